package provider

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// geminiFormat declares functions for the Gemini API (FunctionDeclaration): MCP
// tools with parametersJsonSchema, unchanged; all others with parameters, sanitized
// and adapted to the API's type Schema. According to the documentation, a name has
// at most 64 letters, digits, underscores, colons, dots and dashes, and begins with
// a letter or underscore. Vertex AI does not accept colons, but registered names
// have none.
func geminiFormat() Format {
	return Format{
		Name:    "gemini",
		Summary: "Gemini API function declarations",
		expects: "candidates, a content with parts, or a list of function calls",
		decode:  decodeGemini,
		media:   mediaLimits{image: 20 << 20 / 4 * 3, file: 20 << 20 / 4 * 3},
		join:    joinGemini,
		reply:   replyGemini,
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
			e.value(t.schema)
			if behavior := t.def.Provider.Behavior; behavior != "" && !e.opts.GeminiReference {
				e.raw(`,"behavior":`)
				e.string(behavior)
			}
			if !e.opts.GeminiReference {
				e.further(t, "responseJsonSchema", t.def.DeclaredOutputSchema(), e.outputSchema)
			}
			e.raw("}")
		},
	}
}

// prepareGemini sanitizes a schema as Gemini CLI does and, if the API would still
// reject it, adapts it to the API's type Schema. A schema that this type cannot
// express is declared with parametersJsonSchema instead.
func (e *encoder) prepareGemini(t *tool) {
	e.noStrict()
	if e.opts.GeminiReference {
		e.prepareReference(t)
		return
	}
	t.byParameters = e.opts.GeminiParameters || !t.def.OfServer()
	switch {
	case !t.byParameters:
	case t.bare && !t.def.OfServer(), // Gemini CLI declares {} for a tool without params
		t.def.Source == registry.SourceBuiltin && unclosed(t.schema):
		t.schema = jsonx.NewObject()
	case gemini.Foreign(t.schema):
		e.fitGemini(t)
	default:
		if t.def.SentInput != nil { // what Gemini CLI would declare, if the API takes it
			t.schema = e.reread(t.def.SentInput)
		}
		if changes, whole := gemini.Sanitize(t.schema); whole && !gemini.Foreign(t.schema) && gemini.Takes(t.schema) {
			e.changed(t, changes)
			return
		}
		t.schema = e.reread(t.def.InputSchema)
		e.fitGemini(t)
	}
}

// prepareReference changes a schema exactly as Gemini CLI does.
func (e *encoder) prepareReference(t *tool) {
	t.byParameters = !t.def.OfServer()
	if !t.bare || !t.byParameters { // for a server's tool without a schema it declares an object without properties
		t.schema = e.reread(t.def.AsSent().InputSchema)
	} else {
		t.schema = jsonx.NewObject()
	}
	if t.byParameters {
		changes, whole := gemini.Sanitize(t.schema)
		e.changed(t, changes)
		if !whole {
			e.diagnose(registry.SeverityWarning, "schema_partly_sanitised", t, "an anyOf in its schema is not a list; the rest is declared unchanged", "fix it at the source of the tool")
		}
	}
	gemini.Respell(t.schema)
}

// fitGemini rewrites a schema for which sanitizing is not sufficient.
func (e *encoder) fitGemini(t *tool) {
	fitted, err := e.fitter.Fit(t.schema)
	if err == nil && len(fitted.Lost) > 0 && !e.opts.GeminiParameters {
		err = errors.New(strings.Join(fitted.Lost, "; "))
	}
	switch {
	case err == nil:
		t.schema = fitted.Schema
		changes, _ := gemini.Sanitize(t.schema)
		fitted.Changes = append(fitted.Changes, changes...)
		for _, what := range fitted.Lost {
			fitted.Changes = append(fitted.Changes, "omitted: "+what)
		}
		e.changed(t, fitted.Changes)
	case e.opts.GeminiParameters:
		t.unfit = fmt.Errorf("parameters cannot express its schema: %w", err)
	default:
		t.byParameters = false
		e.changed(t, rewrite.TypeRoot(t.schema))
		e.diagnose(registry.SeverityInfo, "schema_as_json_schema", t,
			fmt.Sprintf("declared with parametersJsonSchema, since parameters cannot express all of it: %v", err), "--gemini-parameters uses parameters for as much as possible")
	}
}

// unclosed removes additionalProperties from the schema of a built-in tool, and
// reports whether the schema has no properties. The API's type Schema supports
// neither the keyword nor an object without properties.
func unclosed(n *jsonx.Value) (empty bool) {
	n.Remove("additionalProperties")
	for sub := range schema.Within(n) {
		unclosed(sub)
	}
	properties := n.Get("properties")
	return properties == nil || len(properties.Members) == 0
}
