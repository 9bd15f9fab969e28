package schemacmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// Request is what to declare, and how. The caller handles Strict of the selection.
type Request struct {
	cli.Selection
	Tools    []string // names and globs; if empty, all that the filters select
	Format   provider.Format
	Encode   provider.Options
	Deferral cli.Deferral
	Scripts  bool // declare the tool run_script too
	// Scope reports whether scripts may call a tool. If nil, they may call those that the filters
	// select.
	Scope func(*registry.Tool) bool
}

// noteFunc receives diagnostics, and the error whose own diagnostic need not be shown.
type noteFunc = func([]registry.Diagnostic, error)

// Declare declares tools of a session and returns the registry that has them. note
// receives diagnostics, also if there is an error.
func (r *Request) Declare(ctx context.Context, s *engine.Session,
	note noteFunc) (provider.Output, *registry.Registry, error) {
	names, withScripts, err := r.Names(ctx, s)
	if err != nil {
		return provider.Output{}, nil, err
	}
	reg, tools, err := r.offered(ctx, s, names, note)
	if err != nil {
		return provider.Output{}, reg, err
	}
	defs := engine.Definitions(reg, tools)
	scripts := "" // name of run_script
	if withScripts {
		whole, err := s.Tools.All(ctx)
		if err != nil {
			return provider.Output{}, reg, err
		}
		scope := r.Scope
		if scope == nil {
			scope = r.Matches
		}
		own, ok, err := s.Scripts.Declare(ctx, whole, r.Format.Name, scope)
		if err != nil {
			return provider.Output{}, reg, err
		}
		if ok {
			defs, scripts = append(defs, own.Tool.Definition), own.Tool.Name
		}
	}
	if r.Deferral.On() {
		out, err := r.deferred(ctx, s, defs, scripts, note)
		return out, reg, err
	}
	options := r.Encode
	if options.Registered, err = registered(ctx, s, []provider.Format{r.Format}, defs); err != nil {
		return provider.Output{}, reg, err
	}
	out, diags := r.Format.Encode(defs, options)
	note(diags, nil)
	return out, reg, nil
}

// Names returns the wanted names of tools without that of run_script, and whether to declare
// that.
func (r *Request) Names(ctx context.Context, s *engine.Session) (names []string, scripts bool, err error) {
	on := r.Scripts || s.Settings.Script.Declared()
	scripts = r.Scripts || on && len(r.Tools) == 0
	for _, name := range r.Tools {
		own, err := s.Scripts.Has(ctx, name)
		if own && !on {
			_, err = s.Tools.Find(ctx, name, engine.Query{Script: true}) // says what declares it
		}
		if err != nil {
			return nil, false, err
		}
		if own {
			scripts = true
		} else {
			names = append(names, name)
		}
	}
	return names, scripts, nil
}

// offered returns the wanted tools except those whose every call is denied, and reports the denied
// ones to note.
func (r *Request) offered(ctx context.Context, s *engine.Session, names []string,
	note noteFunc) (*registry.Registry, []*registry.Tool, error) {
	reg, tools, err := r.selectTools(ctx, s, names)
	if reg != nil {
		note(s.Tools.Diagnostics(reg), err)
	}
	if err != nil {
		return reg, nil, err
	}
	tools, denied, err := s.Offers.Split(ctx, reg, tools)
	severity := registry.SeverityInfo
	if len(r.Tools) > 0 {
		severity = registry.SeverityWarning
	}
	for _, h := range denied {
		note([]registry.Diagnostic{{Severity: severity, Code: "tool_denied", Source: h.Source, Tool: h.Name,
			Message: fmt.Sprintf("tool %q is not declared: %s", h.Name, h.Reason), Hint: "set at " + h.Setting}}, nil)
	}
	return reg, tools, err
}

// selectTools returns the tools in registry order. If there is a registry, it is returned even
// with an error.
func (r *Request) selectTools(ctx context.Context, s *engine.Session,
	names []string) (*registry.Registry, []*registry.Tool, error) {
	if len(names) > 0 {
		reg, tools, err := s.Tools.FindAll(ctx, names...)
		return reg, r.Apply(tools), err
	}
	if len(r.Tools) > 0 { // run_script alone
		reg, err := s.Tools.All(ctx)
		return reg, nil, err
	}
	reg, err := r.Load(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	return reg, r.Apply(reg.Tools()), nil
}

// registered returns the names of all tools in the registry; nil if they cannot affect
// the declared names. The whole registry is loaded only if a format does not accept a
// name unchanged.
func registered(ctx context.Context, s *engine.Session,
	formats []provider.Format, defs []registry.Definition) ([]string, error) {
	for _, f := range formats {
		if slices.ContainsFunc(defs, func(d registry.Definition) bool { return !f.Keeps(d.Name) }) {
			reg, err := s.Tools.All(ctx)
			if err != nil {
				return nil, err
			}
			return engine.Names(reg), nil
		}
	}
	return nil, nil
}

// deferred declares the tool named always and what fits in the budget, and how the model finds
// the rest.
func (r *Request) deferred(ctx context.Context, s *engine.Session,
	defs []registry.Definition, always string, note noteFunc) (provider.Output, error) {
	whole, err := s.Tools.All(ctx)
	if err != nil {
		return provider.Output{}, err
	}
	opts, err := s.Offers.Deferral(ctx, whole, r.Deferral.All())
	if err != nil {
		return provider.Output{}, err
	}
	settings := opts.Always
	opts.Always = func(d *registry.Definition) bool { return d.Name == always || settings(d) }
	options := r.Encode
	options.Registered = engine.Names(whole)
	result := deferred.Declare(r.Format, defs, options, opts)
	note(result.Diagnostics, nil)
	if len(defs) < opts.Overview.Tools && result.Deferred > 0 && !r.Format.Defers() {
		note([]registry.Diagnostic{{Severity: registry.SeverityWarning, Code: "search_wider",
			Message: "search_tools also finds tools that this command does not select",
			Hint:    "narrow the registry for both with --preset, tools.only or excludeTools"}}, nil)
	}
	return result.Output, nil
}

const deferHelp = `With --defer auto, the model does not see tools beyond a budget (search.budget,
10,000 tokens) until it searches for them; --defer all defers every tool that
search.always does not name. Formats anthropic and openai-responses declare the
tools as deferred, for the provider's own search. The other formats omit them and
declare search_tools, describe_tools and call_tool instead, which toolreg call
answers in every form. If all tools fit, --defer auto changes nothing.
`

func (o *options) checkDefer() error {
	switch err := o.Deferral.Check(); {
	case err != nil, !o.Deferral.On():
		return err
	case o.lint, o.explain:
		return cli.Usage("--defer cannot be used with --lint or --explain",
			"they apply to the declarations of all tools; remove --defer")
	case o.Encode.GeminiParameters:
		return cli.Usage("--defer and --gemini-parameters cannot be used together",
			"the field parameters cannot express the params of call_tool")
	}
	return nil
}
