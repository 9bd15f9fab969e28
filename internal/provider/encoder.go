package provider

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// changed reports changes to a tool's schema, if there are any.
func (e *encoder) changed(t *tool, changes []string) {
	if len(changes) > 0 {
		e.diagnose(registry.SeverityInfo, "schema_changed", t,
			fmt.Sprintf("schema changed for %s: %s", e.format.Name, strings.Join(changes, "; ")),
			"calls are still checked against the tool's own schema")
	}
}

func (e *encoder) diagnose(severity registry.Severity, code string, t *tool, message, hint string) {
	e.diags = append(e.diags, registry.Diagnostic{
		Severity: severity, Code: code, Source: t.def.Source, Tool: t.def.Name, Message: message, Hint: hint,
	})
}

// flattened makes the root of a tool's schema a plain object, without the keywords that APIs reject
// there, including further. It returns the changes.
func flattened(t *tool, further ...string) []string {
	return slices.Concat(
		rewrite.InlineRoot(t.schema),
		rewrite.FlattenRoot(t.schema, further...),
		rewrite.DropDeadRefs(t.schema), // last, because a target may have been flattened
		rewrite.TypeRoot(t.schema),
	)
}

// declare writes the beginning of a declaration: the text begin, name, description, and the schema
// under key.
func (e *encoder) declare(t *tool, begin, key string) {
	e.raw(begin + `"name":`)
	e.string(t.name)
	e.text("description", t.def.Description)
	e.raw(`,"` + key + `":`)
	e.value(t.schema)
}

func (e *encoder) raw(s string)    { e.out = append(e.out, s...) }
func (e *encoder) string(s string) { e.out = jsonx.AppendQuote(e.out, s) }
func (e *encoder) text(key, s string) {
	e.raw(`,"` + key + `":`)
	e.string(s)
}

func (e *encoder) value(n *jsonx.Value) { e.out = n.AppendTo(e.out) }

// emptyParams is the schema of a tool without params.
func emptyParams() *jsonx.Value {
	s := schema.OfType("object")
	s.Set("properties", jsonx.NewObject())
	return s
}

// reread parses a schema again after it was changed.
func (e *encoder) reread(raw []byte) *jsonx.Value {
	if n, err := e.parser.Parse(raw); err == nil && n.Is(jsonx.Object) {
		return n
	}
	return emptyParams()
}

func (e *encoder) object(raw []byte) (*jsonx.Value, error) { return e.parse(raw, jsonx.Object) }
func (e *encoder) array(raw []byte) (*jsonx.Value, error)  { return e.parse(raw, jsonx.Array) }

func (e *encoder) parse(raw []byte, kind jsonx.Kind) (*jsonx.Value, error) {
	if len(raw) > registry.MaxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, but the limit is %d", len(raw), registry.MaxSchemaBytes)
	}
	n, err := e.parser.Parse(raw)
	if err == nil && !n.Is(kind) {
		err = fmt.Errorf("it is not %s", kind)
	}
	return n, err
}

// outputSchema parses the output schema of a tool, which must be an object.
func (e *encoder) outputSchema(raw []byte) (*jsonx.Value, error) {
	n, err := e.object(raw)
	if err == nil {
		err = schema.CheckObject(n)
	}
	if err == nil {
		rewrite.ForClients(n)
	}
	return n, err
}

// requiresStrict reports whether the settings require a tool to be declared as strict.
func (e *encoder) requiresStrict(t *tool) bool {
	if said := t.def.Provider.Strict; said != nil {
		return *said
	}
	return e.opts.Strict
}

// Anthropic's limits on strict tools in a request, which also apply to Bedrock
// (documentation of structured outputs, "Schema complexity limits").
const (
	maxGrammarTools    = 20
	maxGrammarOptional = 24
	maxGrammarUnions   = 16
)

// prepareGrammar makes a tool's schema strict for Anthropic's models if the
// settings require it. If that is not possible, the tool is declared as not strict.
func (e *encoder) prepareGrammar(t *tool) {
	if !e.requiresStrict(t) {
		return
	}
	strict := t.schema.Clone()
	changes, cost, err := rewrite.StrictGrammar(strict)
	total := e.grammar.Add(cost)
	switch {
	case err != nil:
	case e.format.Name == "anthropic" && slices.ContainsFunc(t.def.Provider.AllowedCallers, isAnthropicCaller):
		err = errors.New("a strict tool cannot be called from code")
	case e.strictTools == maxGrammarTools:
		err = fmt.Errorf("a request may have at most %d strict tools", maxGrammarTools)
	case total.Optional > maxGrammarOptional:
		err = fmt.Errorf("the strict tools of a request may have at most %d optional params in total",
			maxGrammarOptional)
	case total.Unions > maxGrammarUnions:
		err = fmt.Errorf("the strict tools of a request may have at most %d params of several types in total",
			maxGrammarUnions)
	}
	if err != nil {
		e.diagnose(registry.SeverityWarning, "strict_impossible", t,
			"declared without strict: "+err.Error(), "set strict for fewer or for simpler tools")
		return
	}
	e.strictTools++
	e.grammar = total
	t.schema, t.strict = strict, true
	e.changed(t, changes)
}

func (e *encoder) writeStrict(t *tool) {
	if t.def.Provider.Strict != nil {
		e.flag("strict", &t.strict)
	}
}

func (e *encoder) flag(key string, b *bool) {
	if b != nil {
		e.raw(`,"` + key + `":` + strconv.FormatBool(*b))
	}
}

// isAnthropicCaller and isOpenAICaller report whether a caller is known only to
// Anthropic and only to OpenAI. Both know "direct".
func isAnthropicCaller(name string) bool { return strings.HasPrefix(name, "code_execution") }
func isOpenAICaller(name string) bool    { return name == "programmatic" }

// callers writes the callers that may call a tool, without those that only another
// provider knows.
func (e *encoder) callers(t *tool, foreign func(string) bool) {
	names := slices.DeleteFunc(slices.Clone(t.def.Provider.AllowedCallers), foreign)
	if len(names) > 0 {
		list, _ := jsonx.Marshal(names) // cannot fail
		e.raw(`,"allowed_callers":` + string(list))
	}
}

// examples writes example params. The tool's schema must not be used
// afterwards.
func (e *encoder) examples(t *tool) {
	separator := `,"input_examples":[`
	for _, raw := range t.def.Provider.InputExamples {
		example, err := e.object(raw)
		if err != nil {
			e.omitField(t, "inputExamples", fmt.Errorf("an example cannot be used: %w", err))
			continue
		}
		e.raw(separator)
		e.value(example)
		separator = ","
	}
	if separator == "," {
		e.raw("]")
	}
}

// maxCachePoints is the maximum number of cache points in a request, including
// those in the system prompt and the messages.
const maxCachePoints = 4

// cachePoint returns the cache point after a tool. It returns nil if there is none
// or the API would reject it.
func (e *encoder) cachePoint(t *tool) *registry.CacheControl {
	point := t.def.Provider.CacheControl
	var err error
	switch {
	case point == nil:
		return nil
	case e.cachePoints == maxCachePoints:
		err = fmt.Errorf("a request may have at most %d of them", maxCachePoints)
	case point.TTL == "1h" && e.shortCache:
		err = errors.New("1h may not follow 5m")
	}
	if err != nil {
		e.omitField(t, "cacheControl", err)
		return nil
	}
	e.cachePoints++
	e.shortCache = e.shortCache || point.TTL != "1h"
	return point
}

func (e *encoder) ttl(point *registry.CacheControl) {
	if point.TTL != "" {
		e.text("ttl", point.TTL)
	}
}

// omitField reports that a field from the settings is not declared.
func (e *encoder) omitField(t *tool, field string, err error) {
	e.diagnose(registry.SeverityWarning, "declaration_partly_left_out", t,
		fmt.Sprintf("declared for %s without its %s: %v", e.format.Name, field, err),
		"change overrides."+t.def.Name+"."+field)
}
