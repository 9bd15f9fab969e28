package overrides

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

type override struct {
	entry
	named    settings.Named
	raw      json.RawMessage // the entry
	shown    json.RawMessage // the entry with secrets masked
	params   []param         // in file order
	renamed  []param         // params that the person's own entry renames, if the project's adds to it
	result   *jq.Expression  // nil if results stay unchanged
	problems []document.Problem
}

// entry has the fields of an override that need no conversion.
type entry struct {
	registry.ProviderFields
	Name              string
	DisplayName       string
	Description       *string
	AppendDescription string
	Category          registry.Category
	Tags              *[]string
	Examples          *[]registry.Example
	Hidden            bool
	Params            json.RawMessage
	Result            string
}

// param holds the settings of an override for one param.
type param struct {
	of          string // the original name
	Name        string
	Description *string
	Default     json.RawMessage // nil if not set, like Const and Enum
	Const       json.RawMessage
	Hidden      bool
	Enum        json.RawMessage
}

// isFixed reports whether the param is left out of declarations, so that calls
// cannot set it.
func (p *param) isFixed() bool { return p.Hidden || p.Const != nil }

func (p *param) lists(value json.RawMessage) bool {
	return slices.ContainsFunc(elements(p.Enum),
		func(item json.RawMessage) bool { return jsonx.Canonical(item) == jsonx.Canonical(value) })
}

// value returns the value to send for a param that calls cannot set, or nil to
// send none.
func (p *param) value() json.RawMessage {
	if p.Const != nil {
		return p.Const
	}
	return p.Default
}

// readEntry reads an entry whose types the settings have already checked. It records
// mistakes in problems.
func readEntry(n settings.Named, shown json.RawMessage) *override {
	o := &override{named: n, shown: shown}
	o.raw = n.JSON()
	if err := jsonx.Unmarshal(o.raw, &o.entry); err != nil {
		if kind := jsonx.KindOf(jsonx.Get(o.raw, "inputExamples")); kind != jsonx.None && kind != jsonx.Array {
			o.fail("/inputExamples", "expected a list of objects, got "+kind.String(), "")
		} else {
			o.fail("", err.Error(), "")
		}
	}
	o.checkSchema()
	if o.Name != "" && registry.ValidName(o.Name) != o.Name {
		o.fail("/name", fmt.Sprintf("%q cannot be the name of a tool", o.Name),
			"use at most 63 letters, digits, _, . and -")
	}
	if o.Result != "" {
		var err error
		if o.result, err = jq.Compile(o.Result); err != nil {
			o.fail("/result", err.Error(), "")
		}
	}
	for name, raw := range jsonx.Members(o.Params) {
		p := readParam(name, raw)
		o.checkParam(&p)
		o.params = append(o.params, p)
	}
	if n.Added != nil {
		for name, raw := range jsonx.Members(jsonx.Get(n.Own.JSON(), "params")) {
			if p := readParam(name, raw); p.Name != "" {
				o.renamed = append(o.renamed, p)
			}
		}
	}
	return o
}

func readParam(name string, raw json.RawMessage) param {
	p := param{of: name}
	_ = jsonx.Unmarshal(raw, &p) // the settings have checked its types
	return p
}

// checkParam records fields that contradict each other.
func (o *override) checkParam(p *param) {
	switch {
	case p.Const != nil && p.Default != nil:
		o.fail(pointer(p.of, "default"), "const and default exclude each other", "keep one of them")
	case p.isFixed() && p.Name != "":
		o.fail(pointer(p.of, "name"), "a param with const or hidden cannot be renamed", "remove it")
	case p.Enum != nil && (jsonx.KindOf(p.Enum) != jsonx.Array || len(elements(p.Enum)) == 0):
		o.fail(pointer(p.of, "enum"), "expected a list of values", "")
	}
}

// pointer returns the position of a param's field in the entry, or of the whole
// param if field is "".
func pointer(param, field string) string {
	p := "/params/" + jsonx.EscapeToken(param)
	if field != "" {
		p += "/" + field
	}
	return p
}

func (o *override) fail(pointer, message, hint string) {
	o.problems = append(o.problems, o.problem(pointer, message, hint))
}

// problem returns a mistake at a position in the entry.
func (o *override) problem(pointer, message, hint string) document.Problem {
	return o.named.Problem("overrides", pointer, message, hint)
}

// checkSchema checks outputSchema, whose type the settings do not check.
func (o *override) checkSchema() {
	switch kind := jsonx.KindOf(o.OutputSchema); kind {
	case jsonx.None, jsonx.True, jsonx.False:
	case jsonx.Object:
		settled, err := registry.SettleDeclared(o.OutputSchema)
		if err != nil {
			o.fail("/outputSchema", "the schema cannot be used: "+err.Error(), "")
			return
		}
		o.OutputSchema = settled
	default:
		o.fail("/outputSchema", "expected true, false or a JSON Schema, got "+kind.String(), "")
	}
}

func elements(list json.RawMessage) []json.RawMessage {
	items, _ := jsonx.Elements(list)
	return items
}
