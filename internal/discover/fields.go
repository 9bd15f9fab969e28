package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// object is a JSON object with case-sensitive keys. The last of duplicate keys
// wins, as in JavaScript.
type object map[string]json.RawMessage

// declaration is one tool as a program declared it.
type declaration struct {
	original   string // the name as declared, which the call command receives
	definition registry.Definition
	fields     object // all fields, including those that only plugins have
	quarantine error  // why the tool cannot be used, or nil
	printed    bool   // by a program, not read from a manifest
}

// declarations collects the declarations in a program's output.
type declarations struct {
	source  string // source of the tools and diagnostics
	limits  Limits
	unnamed string // name for a tool that has none; if empty, such a tool is skipped
	tools   []declaration
	left    int // tools beyond the limit
	diags   []registry.Diagnostic
	dropped int // diagnostics beyond maxDiagnostics
}

// maxDiagnostics limits the number of diagnostics of one source.
const maxDiagnostics = 100

// skip reports an item that is not a tool.
func (d *declarations) skip(place, format string, args ...any) {
	d.diagnose(registry.SeverityWarning, "declaration_skipped",
		"", place+" "+fmt.Sprintf(format, args...)+"; skipped", "")
}

// diagnose adds a diagnostic, up to maxDiagnostics.
func (d *declarations) diagnose(severity registry.Severity, code, tool, message, hint string) {
	if len(d.diags) >= maxDiagnostics {
		d.dropped++
		return
	}
	d.diags = append(d.diags, registry.Diagnostic{
		Severity: severity, Code: code, Source: d.source, Tool: tool, Message: message, Hint: hint,
	})
}

func (d *declarations) diagnostics() []registry.Diagnostic {
	out := d.diags
	if d.left > 0 {
		out = append(out, registry.Diagnostic{
			Severity: registry.SeverityError, Code: "too_many_tools", Source: d.source,
			Message: fmt.Sprintf(
				"%d tools were declared, which is over the limit of %d (limits.tools); the others were left out",
				d.limits.Tools+d.left, d.limits.Tools),
		})
	}
	if d.dropped > 0 {
		out = append(out, registry.Warning("more_diagnostics", d.source,
			fmt.Sprintf("%d more problems were found in the declarations", d.dropped), ""))
	}
	return out
}

func readObject(raw json.RawMessage) (object, bool) {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil, false
	}
	return maps.Collect(jsonx.Members(raw)), true
}

// noParams is the schema of a tool without params.
const noParams = `{"type":"object","properties":{}}`

// unusable returns why a definition parsed from raw cannot be used, or nil if it
// can.
func unusable(def *registry.Definition, raw json.RawMessage, max int64) error {
	for _, schema := range []json.RawMessage{def.InputSchema, def.OutputSchema, def.Annotations} {
		switch {
		case int64(len(schema)) > max:
			return fmt.Errorf("its schema has %d bytes, over the limit of %d (limits.schema)", len(schema), max)
		case jsonx.Depth(schema) > registry.MaxDepth:
			return fmt.Errorf("its schema is nested deeper than %d", registry.MaxDepth)
		}
	}
	if key, twice := jsonx.DuplicateKey(raw); twice {
		return fmt.Errorf("its definition repeats the key %s", text.Quote(key))
	}
	return nil
}

// fieldReader reads the fields of one declaration. A field of the wrong type is
// reported and treated as absent.
type fieldReader struct {
	d    *declarations
	tool string
	o    object
}

func (r fieldReader) wrong(field, want string) {
	r.d.diagnose(registry.SeverityWarning, "field_ignored", r.tool,
		fmt.Sprintf("its %q is %s, not %s; ignored", field, jsonx.KindOf(r.o[field]), want), "")
}

// into decodes a field into a variable. It returns false if the field is absent or
// has another type.
func (r fieldReader) into(field, want string, v any) bool {
	if !isPresent(r.o[field]) {
		return false
	}
	if json.Unmarshal(r.o[field], v) != nil {
		r.wrong(field, want)
		return false
	}
	return true
}

func (r fieldReader) text(field, otherwise string) string {
	var s string
	if r.into(field, "a string", &s) && s != "" {
		return s
	}
	return otherwise
}

func (r fieldReader) boolean(field string) bool {
	var b bool
	return r.into(field, "a boolean", &b) && b
}

func (r fieldReader) texts(field string) []string {
	var list []string
	if !r.into(field, "a list of strings", &list) {
		return nil
	}
	return list
}

func (r fieldReader) objectOf(field string) json.RawMessage {
	raw := r.o[field]
	switch {
	case !isPresent(raw):
		return nil
	case raw[0] == '{':
		return raw
	}
	r.wrong(field, "an object")
	return nil
}

func (r fieldReader) category() registry.Category {
	var c registry.Category
	if !r.into("category", "a string", &c) || strings.TrimSpace(string(c)) == "" {
		return registry.CategoryOther
	}
	return c
}

func (r fieldReader) examples() []registry.Example {
	list, ok := jsonx.Elements(r.o["examples"])
	if !ok && isPresent(r.o["examples"]) {
		r.wrong("examples", "a list")
	}
	var out []registry.Example
	for _, raw := range list {
		o, ok := readObject(raw)
		if !ok {
			r.wrong("examples", "a list of objects")
			continue
		}
		description, _ := jsonx.Text(o["description"])
		out = append(out, registry.Example{Description: description, Params: o["params"]})
	}
	return out
}

// description reads the description. Gemini CLI converts any value to text, so a
// list of lines is joined by commas. This does the same, with a diagnostic.
func (r fieldReader) description() string {
	var list []string
	if json.Unmarshal(r.o["description"], &list) == nil && list != nil {
		r.d.diagnose(registry.SeverityWarning, "field_coerced", r.tool,
			"its description is a list, not a string; its parts were joined", "")
		return strings.Join(list, ",")
	}
	return r.text("description", "")
}

// parameters returns the input schema byte for byte: the first of the two possible
// fields that is an object. If neither is, the tool has no params.
func (r fieldReader) parameters() json.RawMessage {
	for _, field := range []string{"parameters", "parametersJsonSchema"} {
		if raw := r.objectOf(field); raw != nil {
			return raw
		}
	}
	for _, field := range []string{"inputSchema", "input_schema"} {
		if isPresent(r.o[field]) {
			r.d.diagnose(registry.SeverityWarning, "field_ignored", r.tool,
				fmt.Sprintf("its %q is not read here, so it has no parameters", field), `name it "parameters"`)
		}
	}
	return json.RawMessage("{}")
}

// condition is the condition under which a tool is enabled.
type condition struct {
	channels []string       // empty means all
	wanted   map[string]any // values by dotted keys of the context; may be nil
	when     *jq.Expression // may be nil
}

// readCondition reads the fields channels and when of a declaration; evaluator is
// for [jq.Expression.Isolated].
func readCondition(o object, evaluator []string) (condition, error) {
	var c condition
	if raw := o["channels"]; isPresent(raw) && json.Unmarshal(raw, &c.channels) != nil {
		return c, fmt.Errorf("its channels: %s, not a list of strings", jsonx.KindOf(raw))
	}
	raw := o["when"]
	if !isPresent(raw) {
		return c, nil
	}
	v, err := jq.Decode(raw)
	if err != nil {
		return c, fmt.Errorf("its when: %w", err)
	}
	switch v := v.(type) {
	case map[string]any:
		c.wanted = v
	case string:
		if c.when, err = jq.Compile(v); err != nil {
			return c, fmt.Errorf("its when is %w", err)
		}
		c.when = c.when.Isolated(evaluator)
	default:
		return c, fmt.Errorf("its when is %s, not an object or a jq expression", jsonx.KindOf(raw))
	}
	return c, nil
}

// isPresent reports whether a declaration has a field; null means that it has not.
func isPresent(raw json.RawMessage) bool { return !jsonx.IsNull(raw) }

// unmet describes the first condition that is not met, or returns "" if all are. A
// condition that cannot be evaluated is not met. The context is decoded for each
// evaluation, because jq modifies its input.
func (c condition) unmet(ctx context.Context, about json.RawMessage) string {
	if len(c.channels) == 0 && c.wanted == nil && c.when == nil {
		return ""
	}
	v, err := jq.Decode(about)
	if err != nil {
		return "the context cannot be read: " + err.Error()
	}
	facts, _ := v.(map[string]any)
	channel, _ := facts["channel"].(string)
	if len(c.channels) > 0 && !slices.Contains(c.channels, channel) {
		return fmt.Sprintf("it is for channel %s, and this is %s", strings.Join(c.channels, ", "),
			cmp.Or(channel, "no channel (--channel)"))
	}
	for _, key := range slices.Sorted(maps.Keys(c.wanted)) {
		if have := lookUp(facts, key); !matches(have, c.wanted[key]) {
			return fmt.Sprintf("its condition on %s is not met: expected %s, got %s",
				key, encode(c.wanted[key]), encode(have))
		}
	}
	if c.when == nil {
		return ""
	}
	switch ok, err := jq.Holds(c.when.ValueBriefly(ctx, facts)); {
	case err != nil:
		return fmt.Sprintf("its condition %q failed: %s", c.when.Text, err)
	case !ok:
		return fmt.Sprintf("its condition %q is not met", c.when.Text)
	}
	return ""
}

// lookUp finds a dotted key, trying the whole name first.
func lookUp(facts map[string]any, key string) any {
	if v, ok := facts[key]; ok {
		return v
	}
	group, rest, ok := strings.Cut(key, ".")
	if !ok {
		return nil
	}
	inner, _ := facts[group].(map[string]any)
	return lookUp(inner, rest)
}

// matches reports whether a value equals the wanted value, or one of a list.
func matches(have, want any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(w any) bool { return reflect.DeepEqual(have, w) })
	}
	return reflect.DeepEqual(have, want)
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // cannot happen: strings and what JSON was decoded to always encode
	}
	return data
}

// DisabledFilter hides the tools of plugins that are listed in plugins.disabled.
func DisabledFilter(entries []registry.Entry) registry.Filter {
	return func(t *registry.Tool) *registry.Hidden {
		if t.Plugin == "" {
			return nil
		}
		if e, ok := registry.MatchAny(entries, t.Plugin); ok {
			return &registry.Hidden{Reason: "plugins.disabled lists its plugin " + t.Plugin, Setting: e.Setting}
		}
		return nil
	}
}

// ConditionFilter hides tools whose channels or conditions do not match this
// run.
func ConditionFilter() registry.Filter {
	return func(t *registry.Tool) *registry.Hidden {
		if t.Unmet == "" {
			return nil
		}
		return &registry.Hidden{Reason: t.Unmet, Setting: t.Declared}
	}
}
