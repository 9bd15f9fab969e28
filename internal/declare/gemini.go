package declare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// gemini declares functions for the Gemini API (FunctionDeclaration): MCP tools
// by parametersJsonSchema, untouched; all others by parameters, sanitised and
// fitted to the API's type Schema. The
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
		prepare: (*encoder).prepareGemini,
		refuse:  func(t *tool) error { return t.unfit },
		write: func(e *encoder, t *tool) {
			e.named(t)
			if t.byParameters {
				e.raw(`,"parameters":`)
			} else {
				e.raw(`,"parametersJsonSchema":`)
			}
			e.node(t.schema)
			e.raw("}")
		},
	}
}

// prepareGemini sanitises a schema as the Gemini CLI does and, where the API
// would still refuse it, fits it to the API's type Schema. A schema that the
// type cannot say is declared by parametersJsonSchema all the same.
func (e *encoder) prepareGemini(t *tool) {
	e.noStrict()
	if t.byParameters = e.opts.GeminiParameters || !t.def.IsMCP(); !t.byParameters {
		e.changed(t, withoutDeadRefs(t))
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
	own := t.schema
	if !foreign(own) {
		broken := sanitize(own)
		c := checker{quick: true}
		if c.gemini(own, nil); len(broken) == 0 && !c.refused {
			return
		}
		own = e.again(t)
	}
	f := &e.fitter
	fitted, err := f.fit(own)
	switch {
	case err == nil && (len(f.lost) == 0 || e.opts.GeminiParameters):
		sanitize(fitted)
		t.schema = fitted
		for _, what := range f.lost {
			f.changes = append(f.changes, "not said: "+what)
		}
		e.changed(t, f.changes)
	case e.opts.GeminiParameters:
		t.unfit = fmt.Errorf("parameters cannot say its schema: %w", err)
	default:
		if err == nil {
			err = errors.New(strings.Join(f.lost, "; "))
		}
		t.schema, t.byParameters = own, false
		e.changed(t, slices.Concat(lowerTypes(own), modernWords(own), withoutDeadRefs(t), typedRoot(own)))
		e.diagnose(registry.SeverityInfo, "schema_as_json_schema", t,
			fmt.Sprintf("declared by parametersJsonSchema, since parameters cannot say it whole: %v", err), "--gemini-parameters declares by parameters what can be")
	}
}

// foreign reports whether a schema holds what the API refuses and sanitising
// leaves as it is, which spares most schemas both.
func foreign(n *node) bool {
	if n.kind != kindObject {
		return true
	}
	for i := range n.members {
		m := &n.members[i]
		if !geminiKeyword(m.name) || m.name == "type" && m.value.kind == kindArray {
			return true
		}
	}
	if properties := n.get("properties"); properties != nil {
		for i := range properties.members {
			if foreign(properties.members[i].value) {
				return true
			}
		}
	}
	items := n.get("items")
	return items != nil && foreign(items)
}

// named opens an object with name and description.
func (e *encoder) named(t *tool) {
	e.raw(`{"name":`)
	e.string(t.name)
	e.raw(`,"description":`)
	e.string(t.def.Description)
}

// noStrict says, once, that the format has no strict schemas of OpenAI's kind.
// Those of Anthropic and Bedrock are not used: requests with many such tools are
// refused there.
func (e *encoder) noStrict() {
	if !e.opts.Strict {
		return
	}
	e.opts.Strict = false
	e.diags = append(e.diags, registry.Diagnostic{
		Severity: registry.SeverityWarning, Code: "strict_ignored",
		Message: "--strict makes OpenAI's strict schemas; format " + e.format.Name + " is declared as usual",
		Hint:    "it is for formats openai and openai-responses",
	})
}

// unclosed takes additionalProperties from the schema of a built-in tool, and
// reports whether it has no properties: the API's type Schema knows neither the
// keyword nor an object without properties.
func unclosed(n *node) (empty bool) {
	n.remove("additionalProperties")
	eachSchema(n, func(sub *node) { unclosed(sub) })
	properties := n.get("properties")
	return properties == nil || len(properties.members) == 0
}
