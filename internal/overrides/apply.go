package overrides

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// apply applies the override to out, a copy of t. It returns the mistakes that
// only show when the override is compared with the tool.
func (o *override) apply(ctx context.Context, t, out *registry.Tool) []document.Problem {
	s := &shaping{override: o, ctx: ctx, tool: t}
	if o.loosens(t) {
		s.fail("/category",
			fmt.Sprintf("a project cannot make a tool of category %q one of category %q", t.Category, o.Category),
			"set it in your own settings")
	}
	s.texts(out)
	if len(o.params) > 0 {
		s.reshape(out)
	}
	s.checkInputExamples(out)
	if len(s.found) > 0 {
		return s.found
	}
	if s.to != nil {
		translate(t, out, s.to)
	}
	if o.result != nil {
		out.OutputSchema, out.SentOutput, out.CanUpdateOutput = nil, nil, false
		if jsonx.KindOf(o.OutputSchema) == jsonx.Object {
			out.OutputSchema = o.OutputSchema
		}
		out.Project = o.project
	}
	return nil
}

// loosens reports whether an override in a project's settings may make the policy ask
// less often about a tool: rules and defaults of any category may deny. The category of an MCP
// tool matters only if its server is trusted.
func (o *override) loosens(t *registry.Tool) bool {
	return o.Category != "" && o.Category != t.Category && o.named.At("/category").Scope == settings.ScopeProject && (!t.IsMCP() || t.Trusted)
}

// shaping is the state of applying an override to one tool.
type shaping struct {
	*override
	ctx    context.Context
	tool   *registry.Tool
	schema *object
	to     *translation
	found  []document.Problem
}

func (s *shaping) fail(pointer, message, hint string) {
	s.found = append(s.found, s.problem(pointer, message, hint))
}

// texts sets the names, descriptions and other texts of the tool.
func (s *shaping) texts(out *registry.Tool) {
	o := s.override
	if o.Name != "" && o.Name != out.Name {
		if rest, ok := strings.CutPrefix(out.DisplayName, s.tool.OriginalName()); ok {
			out.DisplayName = o.Name + rest
		}
		out.Name, out.Aliases = o.Name, nil
	}
	if o.DisplayName != "" {
		out.DisplayName = o.DisplayName
		if out.IsMCP() {
			out.MCP.Title = o.DisplayName
		}
	}
	if o.Description != nil {
		out.Description = *o.Description
	}
	if o.AppendDescription != "" {
		out.Description = strings.TrimLeft(out.Description+"\n\n"+o.AppendDescription, "\n")
	}
	if o.Category != "" {
		out.Category = o.Category
	}
	if o.Tags != nil {
		out.Tags = *o.Tags
	}
	if o.Examples != nil {
		out.Examples = *o.Examples
	}
	out.Provider = o.ProviderFields
}

func (s *shaping) reshape(out *registry.Tool) {
	s.schema = newObject(s.tool.InputSchema)
	s.to = &translation{
		tool:   out.Name,
		origin: s.named.Origin.String(),
		names:  map[string]string{},
		closed: map[string]string{},
		own:    map[string]string{},
	}
	for _, p := range s.renamed {
		s.to.own[p.of] = p.Name
	}
	names := s.schema.names()
	for i := range s.params {
		s.param(&s.params[i])
	}
	if len(s.found) > 0 {
		return
	}
	s.rename(names)
	s.schema.dropUnused()
	out.InputSchema, out.SentInput = s.schema.root.AppendTo(nil), nil
	if s.Examples == nil {
		out.Examples = s.examples(out.Examples)
	}
}

// param changes the schema of one param, except its name.
func (s *shaping) param(p *param) {
	parts, keyword := s.schema.propertiesWith(p.of), s.schema.conditional(p.of)
	if len(parts) == 0 && keyword == "" {
		hint := ""
		if near := registry.Near(p.of, s.schema.names()); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", near[0])
		}
		s.fail(pointer(p.of, ""), "the tool has no such param", hint)
		return
	}
	if len(parts) == 0 {
		s.fail(pointer(p.of, ""), fmt.Sprintf(
			"the input schema has this param only under %q, where an override cannot change it", keyword), "")
		return
	}
	if keyword != "" && (p.isFixed() || p.Name != "" || p.Default != nil) {
		s.fail(pointer(p.of, ""),
			fmt.Sprintf("the input schema has conditions on this param under %q, so an override can change only its description and enum", keyword),
			"")
		return
	}
	if (p.isFixed() || p.Name != "") && s.schema.refersTo(p.of) {
		s.fail(pointer(p.of, ""),
			"another part of the input schema refers to this param, so it cannot be fixed, hidden or renamed", "")
		return
	}
	if p.Name != "" && slices.ContainsFunc(s.schema.parts,
		func(part *jsonx.Value) bool { return part.Get("propertyNames") != nil }) {
		s.fail(pointer(p.of, "name"), `the input schema has propertyNames, so a param cannot be renamed`, "")
	}
	if p.isFixed() {
		s.fix(p, parts)
		return
	}
	if p.Enum != nil {
		s.narrow(p, parts)
	}
	if p.Default != nil {
		s.fits(p, "default", p.Default, parts)
		editable(parts[0], p.of).Set("default", parse(p.Default))
		s.schema.makeOptional(p.of)
		s.to.absent = append(s.to.absent, value{p.of, p.Default})
	}
	if p.Description != nil {
		editable(parts[0], p.of).Set("description", jsonx.NewString(*p.Description))
	}
}

// fix removes a param from the schema and records the value to send instead.
func (s *shaping) fix(p *param, parts []*jsonx.Value) {
	field := "const"
	if p.Const == nil {
		field = "default"
	}
	switch value := p.value(); {
	case value != nil && p.Enum != nil && !p.lists(value):
		s.fail(pointer(p.of, field), "the value is not in the enum of the override", "")
	case value != nil:
		s.fits(p, field, value, parts)
	case s.schema.requires(p.of):
		s.fail(pointer(p.of, "hidden"), "the tool requires the param", "give it a const or a default")
	}
	s.schema.remove(p.of)
	s.to.fixed = append(s.to.fixed, value{p.of, p.value()})
}

func (s *shaping) narrow(p *param, parts []*jsonx.Value) {
	for _, item := range elements(p.Enum) {
		if !s.fits(p, "enum", item, parts) {
			return
		}
	}
	param := editable(parts[0], p.of)
	param.Remove("const")
	param.Set("enum", parse(p.Enum))
}

// fits reports whether the schema of a param accepts a value. If it does not, fits
// records a mistake.
func (s *shaping) fits(p *param, field string, raw json.RawMessage, parts []*jsonx.Value) bool {
	for _, properties := range parts {
		if message := s.refuses(properties.Get(p.of), p.of, raw); message != "" {
			s.fail(pointer(p.of, field), "the tool's input schema rejects the value: "+message, "")
			return false
		}
	}
	return true
}

// refuses returns the reason why a schema rejects the value of a param, or "" if
// it accepts the value.
func (s *shaping) refuses(param *jsonx.Value, name string, raw json.RawMessage) string {
	if certainlyAccepts(param, raw) {
		return ""
	}
	violations, err := s.validate(param, name, raw)
	switch {
	case err != nil:
		return err.Error()
	case len(violations) == 0:
		return ""
	}
	return violations[0].Message
}

// validate validates the value of a param against a part of the tool's own schema.
func (s *shaping) validate(param *jsonx.Value, name string, raw json.RawMessage) ([]registry.Violation, error) {
	one, given := jsonx.NewObject(), s.schema.references().Root()
	for _, m := range given.Members {
		switch m.Name {
		case "$schema", "$id", "id", "$defs", "definitions", "$anchor":
			one.Set(m.Name, m.Value)
		}
	}
	properties := jsonx.NewObject()
	if all := given.Get("properties"); all.Is(jsonx.Object) { // references may refer to them
		properties.Members = slices.Clone(all.Members)
	}
	properties.Set(name, param)
	one.Set("properties", properties)
	value := jsonx.NewObject(jsonx.NewMember(name, parse(raw)))
	return registry.NewValidator(one.AppendTo(nil)).Validate(s.ctx, value.AppendTo(nil))
}

// rename gives the remaining params their new names, and forbids all other names
// in calls. names are the names that the tool itself uses.
func (s *shaping) rename(names []string) {
	to, by := map[string]string{}, map[string]*param{}
	for i := range s.params {
		p := &s.params[i]
		by[p.of] = p
		if p.Name != "" && p.Name != p.of {
			to[p.of] = p.Name
		}
	}
	fixed := map[string]bool{}
	for _, v := range s.to.fixed {
		fixed[foldName(v.name)] = true
		s.to.close(v.name, "")
	}
	for _, name := range names {
		p := by[name]
		if p != nil && p.isFixed() {
			continue
		}
		now := name
		if renamed, ok := to[name]; ok {
			now = renamed
		}
		if other, taken := s.to.names[now]; taken {
			if p == nil || p.Name == "" {
				p = by[other]
			}
			s.fail(pointer(p.of, "name"), fmt.Sprintf("the tool has another param %q", now), "")
			continue
		}
		if _, ok := to[name]; ok && fixed[foldName(now)] {
			s.fail(pointer(name, "name"), fmt.Sprintf("%q is the name of a param that calls cannot set", now), "")
		}
		s.to.names[now] = name
		if p != nil {
			s.to.close(name, now)
			s.to.close(now, now)
		}
	}
	s.schema.rename(to)
}

// examples returns the examples of the tool in its new shape, without those that
// use values the override excludes.
func (s *shaping) examples(given []registry.Example) []registry.Example {
	var out []registry.Example
	for _, x := range given {
		if s.excludes(x.Params) {
			continue
		}
		if params, _, err := s.to.shape(x.Params); err == nil {
			x.Params = params
		}
		out = append(out, x)
	}
	return out
}

// excludes reports whether an enum of the override leaves out a value of params.
func (s *shaping) excludes(params json.RawMessage) bool {
	return slices.ContainsFunc(s.params, func(p param) bool {
		value := jsonx.Get(params, p.of)
		return p.Enum != nil && value != nil && !p.lists(value)
	})
}

// project applies the expression of the override to a result. An error result
// stays unchanged if the expression fails or returns null for it, because an
// expression written for successful results would otherwise remove the error text.
func (o *override) project(ctx context.Context, r registry.Result) (registry.Result, error) {
	raw, err := Raw(r)
	if err != nil {
		return r, err
	}
	input, err := jq.Decode(raw)
	if err != nil {
		return r, err
	}
	v, err := o.result.ValueBriefly(ctx, input)
	switch {
	case r.IsError && (err != nil || v == nil):
		return r, nil
	case err != nil:
		return r, fmt.Errorf("overrides.%s.result failed: %w", o.named.Name, err)
	}
	text, structured, err := jq.Text(v)
	if err != nil {
		return r, err
	}
	r.Content, r.Structured, r.Display = []registry.Content{registry.TextContent(text)}, structured,
		registry.Display{Plain: true}
	return r, nil
}

// Raw returns a result as JSON, in the form that the expressions of overrides take
// as input.
func Raw(r registry.Result) ([]byte, error) {
	out := struct {
		Content    []registry.Content `json:"content"`
		Structured any                `json:"structuredContent,omitempty"`
		IsError    bool               `json:"isError"`
	}{Content: r.Content, IsError: r.IsError}
	if out.Content == nil {
		out.Content = []registry.Content{}
	}
	if len(r.Structured) > 0 {
		out.Structured = r.Structured
	}
	return jsonx.Marshal(out)
}

// checkInputExamples checks that the input examples are valid in the new shape,
// because a provider would reject the whole request otherwise.
func (s *shaping) checkInputExamples(out *registry.Tool) {
	if len(s.InputExamples) == 0 {
		return
	}
	schema := registry.NewValidator(out.InputSchema)
	for i, example := range s.InputExamples {
		place := fmt.Sprintf("/inputExamples/%d", i)
		params, err := jsonx.Parse(example, jsonx.Options{Depth: registry.MaxDepth})
		if err != nil || !params.Is(jsonx.Object) {
			s.fail(place, "expected an object with params", "")
			continue
		}
		if err = schema.Check(s.ctx, out.Name, example); err == nil && s.to != nil {
			err = s.to.refuse(params)
		}
		if err != nil {
			s.fail(place, err.Error(), "write the params as in a call")
		}
	}
}
