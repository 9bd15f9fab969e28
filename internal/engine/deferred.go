package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// Deferral returns the options for declaring a registry's tools, so that a model can find
// those that are not declared. It returns an *InputError if the rules are invalid.
func (s *Session) Deferral(ctx context.Context, whole *registry.Registry, all bool) (deferred.Options, error) {
	offered, _, err := s.Offered(ctx, whole, whole.Tools())
	set := s.set.Search
	return deferred.Options{All: all, Budget: set.Budget, Client: set.Client, Overview: s.overview(offered), Always: s.alwaysDeclared()}, err
}

// alwaysDeclared returns a function that reports whether search.always names a tool.
func (s *Session) alwaysDeclared() func(*registry.Definition) bool {
	always := s.set.Search.Always.Sourced()
	return func(d *registry.Definition) bool {
		_, named := registry.MatchAny(always, d.Spellings()...)
		return named
	}
}

// overview counts tools by source.
func (s *Session) overview(tools []*registry.Tool) deferred.Overview {
	o := deferred.Overview{Tools: len(tools)}
	at := map[string]int{}
	for _, t := range tools {
		i, ok := at[t.Source]
		if !ok {
			i = len(o.Sources)
			at[t.Source] = i
			o.Sources = append(o.Sources, deferred.Source{Name: t.Source, Description: s.serverDescription(t.Server)})
		}
		o.Sources[i].Tools++
	}
	return o
}

// serverDescription returns the description of a server in the settings; "" if
// there is none.
func (s *Session) serverDescription(server string) string {
	for i := range s.set.Servers {
		if s.set.Servers[i].Name == server {
			return s.set.Servers[i].Description
		}
	}
	return ""
}

// reach is one of the three tools through which a model reaches tools that are
// not declared, for one registry.
type reach struct {
	*Session
	kind     string // such as deferred.SearchTools
	format   string // format of the names that the model knows; "": those of the registry
	registry *registry.Registry
	offered  []*registry.Tool
	names    map[string]string // names of the three tools, by kind
	declared map[string]string // declared names, by name; nil: unchanged
}

// reaching returns the one of the three tools with this name, if the registry has no tool
// of that name. ok is false for all other names.
func (s *Session) reaching(ctx context.Context, whole *registry.Registry, name, format string) (found Found, ok bool, err error) {
	kind := deferred.Kind(name)
	if kind == "" {
		return Found{}, false, nil
	}
	r := &reach{Session: s, kind: kind, format: format, registry: whole, names: map[string]string{}}
	if r.offered, _, err = s.Offered(ctx, whole, whole.Tools()); err != nil {
		return Found{}, false, err
	}
	if format != "" {
		r.declared = s.Declared(whole, format)
	}
	t := &registry.Tool{Run: r.answer}
	for _, d := range s.overview(r.offered).Definitions(deferred.Taken(format, Names(whole))) {
		r.names[deferred.Kind(d.Name)] = d.Name
		if deferred.Kind(d.Name) == kind {
			t.Definition = d
		}
	}
	if kind == deferred.SearchTools {
		t.Check = r.checkQuery
	}
	return Found{Registry: whole, Tool: t, reach: r}, true, nil
}

// FoundIn returns tools of a registry as if they had been looked up in it.
func FoundIn(reg *registry.Registry, tools []*registry.Tool) []Found {
	out := make([]Found, len(tools))
	for i, t := range tools {
		out[i] = Found{Registry: reg, Tool: t}
	}
	return out
}

// Reaching returns the three tools through which a model reaches the tools of
// the whole registry, preceded by those that must be declared with them
// according to the settings (search.always, deferLoading: false) or always.
func (s *Session) Reaching(ctx context.Context, whole *registry.Registry, always func(*registry.Definition) bool) ([]Found, error) {
	offered, _, err := s.Offered(ctx, whole, whole.Tools())
	if err != nil {
		return nil, err
	}
	set := s.alwaysDeclared()
	kept := slices.DeleteFunc(offered, func(t *registry.Tool) bool {
		said := t.Provider.DeferLoading
		return (said == nil || *said) && !set(&t.Definition) && !always(&t.Definition)
	})
	out := FoundIn(whole, kept)
	for _, name := range []string{deferred.SearchTools, deferred.DescribeTools, deferred.CallTool} {
		f, _, err := s.reaching(ctx, whole, name, "mcp")
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// Resolve returns the tool to call, its name and its params. They are returned unchanged
// unless f is call_tool: then they are those of the tool that the params of call_tool
// name, and the call is made, logged and judged as a call of that tool. It returns the
// errors of [Session.Find], or a *registry.ArgsError if the params of call_tool are
// invalid.
func (s *Session) Resolve(ctx context.Context, f Found, name string, raw json.RawMessage) (Found, string, json.RawMessage, error) {
	if f.reach == nil || f.reach.kind != deferred.CallTool {
		return f, name, raw, nil
	}
	inner, params, err := f.reach.called(ctx, f.Tool, raw)
	if err != nil {
		return f, name, raw, s.RefusedParams(ctx, f.Tool, err)
	}
	found, err := s.Find(ctx, inner, Query{Call: true, Format: f.reach.format, Reach: true})
	if err == nil && found.reach != nil && found.reach.kind == deferred.CallTool {
		err = s.RefusedParams(ctx, f.Tool, registry.Invalid(f.Tool.Name, "/name", "%s cannot call itself; give the name of the tool to call", f.Tool.Name))
	}
	return found, inner, params, err
}

// Inner returns the name of the tool that call_tool calls with these params. It returns
// "" if f is another tool or the params are invalid.
func (f Found) Inner(raw json.RawMessage) string {
	if f.reach == nil || f.reach.kind != deferred.CallTool || !jsonx.Valid(raw) {
		return ""
	}
	name, _ := jsonx.Text(jsonx.Get(raw, "name"))
	return name
}

// called reads the params of call_tool.
func (r *reach) called(ctx context.Context, t *registry.Tool, raw json.RawMessage) (name string, params json.RawMessage, err error) {
	all, err := registry.DecodeParams(t.Name, raw)
	if err != nil {
		return "", nil, err
	}
	if given := jsonx.Get(all, "params"); jsonx.KindOf(given) == jsonx.String {
		return "", nil, registry.Invalid(t.Name, "/params", `must be an object, such as {"path":"a.txt"}, not a string that contains JSON`)
	}
	if err := r.registry.Validate(ctx, t, all); err != nil {
		return "", nil, err
	}
	name, _ = jsonx.Text(jsonx.Get(all, "name"))
	return name, jsonx.Get(all, "params"), nil
}
