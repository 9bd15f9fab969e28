package provider

import (
	"errors"
	"fmt"
)

// anthropic declares tools for Anthropic's Messages API. Names must match
// ^[a-zA-Z0-9_-]{1,128}$. Only 64 characters are used, which older models and other
// clouds with Anthropic's models also accept. The root of input_schema must be of
// type object, without oneOf, allOf and anyOf, its properties must match
// ^[a-zA-Z0-9_.-]{1,64}$, and the schema must be valid in draft 2020-12.
func anthropic() Format {
	return Format{
		Name:    "anthropic",
		Summary: "Anthropic Messages API tools",
		expects: "a message of role assistant with content, or a list of its blocks",
		decode:  decodeAnthropic,
		media:   mediaLimits{image: 5 << 20 / 4 * 3, file: 32 << 20 / 4 * 3, pixels: 8000},
		callID:  "id",
		join:    joinAnthropic,
		reply:   replyAnthropic,
		rule:    dashedNames(),
		layout:  list,
		prepare: (*encoder).prepareFlat,
		refuse:  refuseOddKeys,
		search:  anthropicSearch,
		write: func(e *encoder, t *tool) {
			e.named(t)
			e.raw(`,"input_schema":`)
			e.value(t.schema)
			e.writeStrict(t)
			e.flag("defer_loading", t.def.Provider.DeferLoading)
			e.flag("eager_input_streaming", t.def.Provider.EagerInputStreaming)
			e.callers(t, isOpenAICaller)
			e.cacheControl(t)
			e.examples(t)
			e.raw("}")
		},
	}
}

// cacheControl writes the cache point of a tool. The API rejects a request with a
// cache point on a deferred tool.
func (e *encoder) cacheControl(t *tool) {
	if deferred := t.def.Provider.DeferLoading; deferred != nil && *deferred && t.def.Provider.CacheControl != nil {
		e.omitField(t, "cacheControl", errors.New("a deferred tool cannot be cached"))
	} else if point := e.cachePoint(t); point != nil {
		e.raw(`,"cache_control":{"type":"ephemeral"`)
		e.ttl(point)
		e.raw("}")
	}
}

// refuseOddKeys rejects a tool with property names that would make the API reject
// the whole request. The API checks only the properties at the root.
func refuseOddKeys(t *tool) error {
	rule := nameRule{extra: "_.-", max: 64}
	properties := t.schema.Get("properties")
	if properties == nil {
		return nil
	}
	for _, m := range properties.Members {
		if m.Name == "" || len(m.Name) > rule.max || !rule.obeys(m.Name) {
			return fmt.Errorf("its param %.80q has a name that the API rejects (allowed are 1 to 64 letters, digits, _, . and -)", m.Name)
		}
	}
	return nil
}

// prepareFlat makes the root a plain object schema.
func (e *encoder) prepareFlat(t *tool) {
	e.noStrict()
	e.changed(t, flattened(t))
	e.prepareGrammar(t)
}
