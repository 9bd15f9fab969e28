package declare

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/declare/gemini"
	"github.com/toolreg/toolreg/internal/declare/rewrite"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// encoder writes the declarations of one call of Encode.
type encoder struct {
	format *Format
	opts   Options
	parser jsonx.Parser
	fitter gemini.Fitter
	out    []byte
	diags  []registry.Diagnostic
}

// tool is one definition on its way to a declaration.
type tool struct {
	def    *registry.Definition
	name   string       // as declared
	schema *jsonx.Value // input schema; its root is an object
	bare   bool         // the source gave no schema, or an empty one
	strict bool         // schema was made strict

	byParameters bool  // gemini: by the field parameters
	unfit        error // gemini: why the schema cannot be declared
}

// Encode declares the definitions in their order. A tool that the format
// cannot express is left out with a diagnostic, the rest stays; where a schema
// or a name had to change, a diagnostic says how. Whatever the definitions
// hold, the output is valid.
func (f Format) Encode(defs []registry.Definition, opts Options) (Output, []registry.Diagnostic) {
	if f.write == nil {
		return Output{}, nil
	}
	e := &encoder{format: &f, opts: opts, parser: jsonx.Parser{Options: options()}}
	lay := f.layout(opts)
	e.out = append(make([]byte, 0, expectedSize(defs)), lay.open...)
	names := f.rule.assign(defs)
	done := make([]Declaration, 0, len(defs))
	spans := make([][2]int, 0, len(defs)) // e.out moves as it grows
	for i := range defs {
		t := tool{def: &defs[i], name: names[i]}
		if err := e.prepare(&t); err != nil {
			e.leaveOut(&t, err)
			continue
		}
		if len(done) > 0 {
			e.out = append(e.out, lay.between...)
		}
		start := len(e.out)
		f.write(e, &t)
		spans = append(spans, [2]int{start, len(e.out)})
		done = append(done, Declaration{Tool: t.def.Name, Name: t.name})
	}
	e.out = append(e.out, lay.close...)
	for i, span := range spans {
		done[i].Data = e.out[span[0]:span[1]:span[1]]
	}
	if len(done) == 0 {
		e.out = []byte(lay.empty)
	}
	return Output{Data: e.out, Declarations: done}, e.diags
}

// expectedSize guesses the size of the output, so that it grows seldom.
func expectedSize(defs []registry.Definition) int {
	n := 1024
	for i := range defs {
		n += 128 + len(defs[i].Name) + len(defs[i].Description) + len(defs[i].InputSchema)
	}
	return n
}

func (e *encoder) prepare(t *tool) error {
	switch {
	case t.def.Name == "":
		return errors.New("it has no name")
	case t.name == "":
		return errors.New("another tool of that name is declared already")
	}
	if err := e.readSchema(t); err != nil {
		return err
	}
	if t.name != t.def.Name {
		e.diagnose(registry.SeverityInfo, "name_changed", t,
			fmt.Sprintf("declared as %q, since %s does not take %q as a name", t.name, e.format.Name, t.def.Name),
			"calls may use either name")
	}
	e.format.prepare(e, t)
	if e.format.refuse != nil {
		return e.format.refuse(t)
	}
	return nil
}

// readSchema parses the input schema. Tools without one take no params.
func (e *encoder) readSchema(t *tool) error {
	raw := t.def.InputSchema
	if len(raw) > registry.MaxSchemaBytes {
		return fmt.Errorf("its schema of %d bytes is over the limit of %d", len(raw), registry.MaxSchemaBytes)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		t.schema, t.bare = emptyParams(), true
		return nil
	}
	n, err := e.parser.Parse(raw)
	if err != nil {
		return fmt.Errorf("its schema is unfit: %w", err)
	}
	if n.Is(jsonx.Null) || n.Is(jsonx.Object) && len(n.Members) == 0 {
		t.schema, t.bare = emptyParams(), true
		return nil
	}
	if err := rewrite.CheckRoot(n); err != nil {
		return err
	}
	t.schema = n
	if e.parser.Duplicate {
		e.changed(t, []string{"keys that stood twice in an object joined, the last value counts"})
	}
	return nil
}

// options are those of schemas and params: a number that no double holds would
// have other readers refuse the whole document.
func options() jsonx.Options {
	return jsonx.Options{Depth: registry.MaxDepth, Number: func(token string) string {
		if len(token) <= 300 && !strings.ContainsAny(token, "eE") {
			return ""
		}
		if _, err := strconv.ParseFloat(token, 64); err != nil {
			return fmt.Sprintf("number %.40s is out of range", token)
		}
		return ""
	}}
}

// emptyParams is the schema of a tool without params.
func emptyParams() *jsonx.Value {
	return jsonx.NewObject(jsonx.NewMember("type", jsonx.NewString("object")), jsonx.NewMember("properties", jsonx.NewObject()))
}

// again reads a schema that was read before, and changed since.
func (e *encoder) again(t *tool) *jsonx.Value {
	if n, err := e.parser.Parse(t.def.InputSchema); err == nil && n.Is(jsonx.Object) {
		return n
	}
	return emptyParams()
}

// changed tells what was done to a tool's schema, if anything.
func (e *encoder) changed(t *tool, changes []string) {
	if len(changes) > 0 {
		e.diagnose(registry.SeverityInfo, "schema_changed", t,
			fmt.Sprintf("schema changed for %s: %s", e.format.Name, strings.Join(changes, "; ")),
			"calls are still checked against the tool's own schema")
	}
}

func (e *encoder) leaveOut(t *tool, err error) {
	e.diagnose(registry.SeverityWarning, "declaration_left_out", t,
		fmt.Sprintf("not declared for %s: %v", e.format.Name, err), "exclude the tool, or mend its schema where it comes from")
}

func (e *encoder) diagnose(severity registry.Severity, code string, t *tool, message, hint string) {
	e.diags = append(e.diags, registry.Diagnostic{
		Severity: severity, Code: code, Source: t.def.Source, Tool: t.def.Name, Message: message, Hint: hint,
	})
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

// raw writes text as it is.
func (e *encoder) raw(s string) { e.out = append(e.out, s...) }

// string writes a JSON string.
func (e *encoder) string(s string) { e.out = jsonx.AppendQuote(e.out, s) }

// node writes a JSON value.
func (e *encoder) node(n *jsonx.Value) { e.out = n.AppendTo(e.out) }

// list is the layout of formats whose declarations are a plain JSON list.
func list(Options) layout { return layout{open: "[", between: ",", close: "]", empty: "[]"} }
