package provider

// bedrock declares tools for Amazon Bedrock's Converse API (ToolSpecification):
// names match [a-zA-Z0-9_-]+ with at most 64 characters, and a description is
// absent or not empty. It requires the same plain root as Anthropic. With
// Options.Request the output is the value of toolConfig.
func bedrock() Format {
	return Format{
		Name:    "bedrock",
		Summary: "Amazon Bedrock Converse tools",
		expects: "output with a message, a message of role assistant with content, or a list of its blocks",
		decode:  decodeBedrock,
		media:   mediaLimits{image: 3_750_000, file: 4_500_000, pixels: 8000},
		callID:  "toolUseId",
		join:    joinBedrock,
		reply:   replyBedrock,
		rule:    dashedNames(),
		layout: func(o Options) layout {
			if o.Request {
				return layout{open: `{"tools":[`, between: ",", close: "]}", empty: `{"tools":[]}`}
			}
			return list(o)
		},
		prepare: (*encoder).prepareFlat,
		refuse:  refuseOddKeys,
		write: func(e *encoder, t *tool) {
			e.raw(`{"toolSpec":{"name":`)
			e.string(t.name)
			if t.def.Description != "" {
				e.raw(`,"description":`)
				e.string(t.def.Description)
			}
			e.raw(`,"inputSchema":{"json":`)
			e.value(t.schema)
			e.raw("}")
			e.writeStrict(t)
			e.raw("}}")
		},
		after: func(e *encoder, t *tool) {
			if point := e.cachePoint(t); point != nil {
				e.raw(`,{"cachePoint":{"type":"default"`)
				e.ttl(point)
				e.raw("}}")
			}
		},
	}
}
