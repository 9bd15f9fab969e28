package declare

import "github.com/toolreg/toolreg/internal/registry"

// gemini declares functions for the Gemini API (FunctionDeclaration): MCP tools
// by parametersJsonSchema, untouched; all others by parameters, sanitised. The
// published rule for names is a letter or underscore first, then letters,
// digits, underscores, colons, dots and dashes, 64 in all (Vertex AI takes no
// colon; registered names have none).
func gemini() Format {
	return Format{
		Name:    "gemini",
		Summary: "Gemini API function declarations",
		rule:    nameRule{extra: ".-", letterFirst: true, max: 64},
		layout: func(o Options) layout {
			if o.Request {
				return layout{open: `[{"functionDeclarations":[`, between: ",", close: "]}]", empty: "[]"}
			}
			return list(o)
		},
		prepare: func(e *encoder, t *tool) {
			e.noStrict()
			if !t.geminiParameters(e) {
				return
			}
			if t.bare && !t.def.IsMCP() {
				t.schema = newObject() // the reference declares {} for a tool without params
				return
			}
			if t.def.Source == registry.SourceBuiltin && unclosed(t.schema) {
				t.schema = newObject()
				return
			}
			for _, what := range sanitize(t.schema) {
				e.diagnose(registry.SeverityWarning, "schema_partly_sanitised", t,
					"a part of the schema is left as it is: "+what, "the provider may refuse it")
			}
		},
		write: func(e *encoder, t *tool) {
			e.named(t)
			if t.geminiParameters(e) {
				e.raw(`,"parameters":`)
			} else {
				e.raw(`,"parametersJsonSchema":`)
			}
			e.node(t.schema)
			e.raw("}")
		},
	}
}

func (t *tool) geminiParameters(e *encoder) bool { return e.opts.GeminiParameters || !t.def.IsMCP() }

// named opens an object with name and description.
func (e *encoder) named(t *tool) {
	e.raw(`{"name":`)
	e.string(t.name)
	e.raw(`,"description":`)
	e.string(t.def.Description)
}

// noStrict says that the format has no strict schemas, once.
func (e *encoder) noStrict() {
	if !e.opts.Strict {
		return
	}
	e.opts.Strict = false
	e.diags = append(e.diags, registry.Diagnostic{
		Severity: registry.SeverityWarning, Code: "strict_ignored",
		Message: "format " + e.format.Name + " has no strict schemas; declared as usual",
		Hint:    "formats openai and openai-responses have them",
	})
}

// unclosed takes additionalProperties from the schema of a built-in tool and
// reports whether it has no properties: the API's type Schema knows neither the
// keyword nor an object without properties, and refuses the whole request.
// Schemas of others go out as they were given, with Lint to tell.
func unclosed(n *node) (empty bool) {
	n.remove("additionalProperties")
	eachSchema(n, func(sub *node) { unclosed(sub) })
	properties := n.get("properties")
	return properties == nil || len(properties.members) == 0
}
