package offer

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// View is what the clients of a profile are offered.
type View struct {
	*Offer
	profile Profile
	tools   []*Declaration   // by the name as declared
	faulty  []*registry.Tool // those that cannot be declared
	// apps is the same with the tools that only pages of tools may call. It is nil if there are none.
	apps *View
}

// WithApps returns the view of clients that show pages of tools (MCP Apps).
func (v *View) WithApps() *View {
	if v.apps != nil {
		return v.apps
	}
	return v
}

// Context returns a context in which only what is part of the view can be found and is named.
func (v *View) Context(ctx context.Context) context.Context { return v.profile.context(ctx) }

// Declaration is a tool and what clients see of it.
type Declaration struct {
	engine.Found
	Name string          // as declared
	Raw  json.RawMessage // the declaration as clients get it
}

// Tool returns the tool that is offered under a name. It returns nil if none is.
func (v *View) Tool(name string) *Declaration {
	at, ok := slices.BinarySearchFunc(v.tools, name, func(d *Declaration, name string) int {
		return strings.Compare(d.Name, name)
	})
	if !ok {
		return nil
	}
	return v.tools[at]
}

// View returns what the clients of a profile are offered, which is made within ctx when it is first needed.
// Without a profile it is everything. If there is no such profile, nothing is offered.
func (o *Offer) View(ctx context.Context, profile string) *View {
	if profile == "" {
		return o.whole
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if v := o.views[profile]; v != nil {
		return v
	}
	v := &View{Offer: o, profile: Profile{
		Name:    profile,
		Tools:   func(*registry.Tool) bool { return false },
		Servers: func(string) bool { return false },
	}}
	for _, p := range o.Profiles {
		if p.Name != profile {
			continue
		}
		who := &caller.Caller{Name: o.Client, Token: o.Client, Profile: profile}
		reg, tools, err := p.Select(p.context(caller.With(ctx, who)), o.Session)
		if err == nil {
			v, err = o.declare(p, reg, append(tools, o.loginTools(&p)...))
		}
		if err != nil {
			o.warn(registry.Warning("profile_unread", "",
				"nothing is offered to clients of profile "+text.Quote(profile)+": "+err.Error(), ""))
		}
	}
	o.views[profile] = v
	return v
}

// declare declares the tools of a profile in the format mcp, with their names in the whole
// registry.
func (o *Offer) declare(p Profile, reg *registry.Registry, tools []engine.Found) (*View, error) {
	format, err := provider.Lookup("mcp")
	if err != nil {
		return nil, err
	}
	out := &View{Offer: o, profile: p, tools: make([]*Declaration, 0, len(tools))}
	models := len(tools)
	// Only pages of servers whose other tools are offered call tools for pages.
	tools = append(tools, engine.FoundIn(reg, slices.DeleteFunc(reg.Apps(), func(app *registry.Tool) bool {
		beside := func(f engine.Found) bool { return f.Tool.Source == app.Source }
		return !p.shows(app) || !slices.ContainsFunc(tools, beside)
	}))...)
	byName := map[string]engine.Found{}
	var defs []registry.Definition
	for _, f := range tools {
		if d, ok := o.declared[f.Tool]; ok {
			out.tools = append(out.tools, d)
			continue
		}
		def := engine.Definition(reg, f.Tool)
		defs, byName[def.Name] = append(defs, def), f
	}
	encoded, diags := format.Encode(defs, provider.Options{Registered: engine.Names(reg)})
	for _, d := range diags {
		if d.Severity != registry.SeverityInfo {
			o.warn(d)
		}
	}
	for _, d := range encoded.Declarations {
		f := byName[d.Tool]
		one := &Declaration{f, d.Name, d.Data}
		out.tools, o.declared[f.Tool] = append(out.tools, one), one
		delete(byName, d.Tool)
	}
	for _, f := range byName {
		out.faulty = append(out.faulty, f.Tool)
	}
	slices.SortFunc(out.tools, func(a, b *Declaration) int { return strings.Compare(a.Name, b.Name) })
	if forApps := tools[models:]; len(forApps) > 0 {
		out.apps = &View{Offer: o, profile: p, tools: slices.Clone(out.tools), faulty: out.faulty}
		out.tools = slices.DeleteFunc(out.tools, func(d *Declaration) bool {
			return slices.ContainsFunc(forApps, func(f engine.Found) bool { return f.Tool == d.Tool })
		})
	}
	return out, nil
}
