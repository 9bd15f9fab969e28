// Package overrides applies the setting overrides to tools: it changes names and
// texts, fixes, hides, renames or restricts params, and reduces results. The
// source of a tool is not aware of its overrides.
//
// A [Set] implements [registry.Overrides]. Each tool is reshaped once, when a
// registry is built, so that listings, declarations, checks and calls see only the
// new shape. The functions of the reshaped tool translate each call before the
// source receives it.
package overrides

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Set contains the overrides in the settings. It is safe for concurrent use.
type Set struct{ named map[string]*override }

// New returns the overrides in merged settings, or nil if there are none.
// evaluator is the command that evaluates the expressions of projects; see
// [jq.Expression.Isolated].
func New(set *settings.Settings, evaluator []string) *Set {
	entries := set.RawNamed("overrides")
	if len(entries) == 0 {
		return nil
	}
	s := &Set{named: make(map[string]*override, len(entries))}
	for _, n := range entries {
		o := readEntry(n, set.Merged().Masked("overrides", n))
		if n.At("/result").Scope == settings.ScopeProject {
			o.result = o.result.Isolated(evaluator)
		}
		s.named[n.Name] = o
	}
	return s
}

// Has reports whether there is an override with that name.
func (s *Set) Has(name string) bool { return s.named[name] != nil }

// IsOwn reports whether there is an override with that name that is not of a project.
func (s *Set) IsOwn(name string) bool {
	o := s.named[name]
	return o != nil && o.named.Origin.Scope != settings.ScopeProject
}

// NewName returns the name that an override gives its tool, or "" if it does not
// rename it.
func (s *Set) NewName(name string) string {
	if o := s.named[name]; o != nil {
		return o.Name
	}
	return ""
}

// IsProjects reports whether a project's settings give the tool of an override its name.
func (s *Set) IsProjects(name string) bool {
	o := s.named[name]
	return o != nil && o.Name != "" && o.named.At("/name").Scope == settings.ScopeProject
}

// Reshape returns the tool with the overrides of these names applied. If they
// cannot be applied, the tool is quarantined with an error that lists the mistakes
// and their positions.
func (s *Set) Reshape(ctx context.Context, t *registry.Tool, names []string) registry.Tool {
	o := s.named[names[0]]
	out := *t
	out.Reshaped = &registry.Reshaped{Upstream: t.Definition, Override: o.raw, Shown: o.shown,
		Origin: o.named.Origin.String(), Hidden: o.Hidden, Personal: o.named.Origin.Scope == settings.ScopeUser}
	if o.Name != t.Name {
		out.Reshaped.Name, out.Reshaped.NameOfProject = o.Name, s.IsProjects(names[0])
	}
	problems := o.problems
	for _, name := range names[1:] {
		other := s.named[name]
		problems = append(problems, o.problem("",
			fmt.Sprintf("the tool has another override as %q at %s", name, other.named.Origin), "keep one of them"))
	}
	if len(problems) == 0 {
		problems = o.apply(ctx, t, &out)
	}
	out.Quarantine = document.NewError(document.SortProblems(problems))
	return out
}

// translate makes the functions of out, a copy of t, accept calls in the new
// shape.
func translate(t, out *registry.Tool, tr *translation) {
	out.Wire, out.Shapes = tr.wire, tr.shapes
	out.Check = checked(t, tr)
	out.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		w, err := tr.wire(call)
		if err != nil {
			return registry.Result{}, err
		}
		w.Admit = func(ctx context.Context, params json.RawMessage, agreed bool) error {
			shaped, edited, err := tr.shape(params)
			if err == nil && edited != nil {
				err = errors.New("it leads to other values of params that an override fixes")
			}
			if err != nil {
				return err
			}
			return call.Admit(ctx, shaped, agreed)
		}
		return t.Run(ctx, w)
	}
	if t.Subject != nil {
		out.Subject = func(call registry.Call) (registry.Subject, error) {
			w, err := tr.wire(call)
			if err != nil {
				return registry.Subject{}, err
			}
			return t.Subject(w)
		}
	}
	if t.Confirm != nil {
		out.Confirm = func(ctx context.Context, call registry.Call) registry.Asking {
			w, err := tr.wire(call)
			if err != nil {
				return registry.Asking{Reason: err.Error(), Origin: tr.origin}
			}
			return t.Confirm(ctx, w)
		}
	}
	if t.Preview != nil {
		out.Preview = func(ctx context.Context, call registry.Call) (registry.Preview, error) {
			w, err := tr.wire(call)
			if err != nil {
				return registry.Preview{}, err
			}
			return t.Preview(ctx, w)
		}
	}
	if t.Revise != nil {
		out.Revise = reviser(t, tr)
	}
}

// checked returns a function that checks a call in the new shape: first the names
// of its params, then the translated call against the tool's original schema and
// its own check.
func checked(t *registry.Tool, tr *translation) func(context.Context, registry.Call) error {
	own := registry.NewValidator(t.InputSchema)
	return func(ctx context.Context, call registry.Call) error {
		w, err := tr.wire(call)
		if err != nil {
			return err
		}
		if err = own.Check(ctx, tr.tool, w.Params); err == nil && t.Check != nil {
			err = t.Check(ctx, w)
		}
		return tr.inShape(err)
	}
}

// reviser returns a function that converts a person's edit to a call in the new
// shape. A person may change params that calls cannot set.
func reviser(t *registry.Tool, tr *translation) func(context.Context, registry.Call, string) (registry.Call, error) {
	return func(ctx context.Context, call registry.Call, content string) (registry.Call, error) {
		w, err := tr.wire(call)
		if err != nil {
			return call, err
		}
		next, err := t.Revise(ctx, w, content)
		if err != nil {
			return call, err
		}
		next.Params, next.Edited, err = tr.shape(next.Params)
		return next, err
	}
}

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
