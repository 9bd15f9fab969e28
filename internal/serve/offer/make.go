package offer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Options are what [New] needs. Session, Whole, Warn and, for a client, Base and LogIn are
// required.
type Options struct {
	Session *engine.Session
	// Whole is what clients without a profile are offered.
	Whole    Profile
	Profiles Profiles
	// Base is the offer for all, if this one is for a client, who gets the same of what it lists.
	Base *Offer
	// Before is the offer to replace, or nil. If it is of the same session, servers that it has are
	// queried for prompts and resources only if they are in Again, and keep what they listed if
	// they fail.
	Before *Offer
	Again  []registry.Source
	// LogIn runs the tool with which the user of a client logs in to a server.
	LogIn func(context.Context, *mcpclient.Source) (registry.Result, error)
	// Warn receives what cannot be offered. It is not called for a client: the offer for all has
	// warned already.
	Warn func(registry.Diagnostic)
}

// New makes the offer for the client of ctx's caller, or for all if ctx has no caller. It makes the
// views that were in use in Before at once.
func New(ctx context.Context, opts Options) (*Offer, error) {
	o := &Offer{
		Session: opts.Session, Client: caller.Token(ctx), Servers: opts.Session.ServersFor(ctx),
		Profiles: opts.Profiles, prompts: map[string]*Prompt{}, listed: map[*mcpclient.Source]listed{}, warn: opts.Warn,
		views: map[string]*View{}, declared: map[*registry.Tool]*Declaration{}, digests: map[[2]string]Digest{},
	}
	var earlier map[*mcpclient.Source]listed
	if opts.Before != nil && opts.Before.Session == opts.Session {
		earlier = opts.Before.listed
	}
	again := opts.Again
	if o.Client != "" {
		o.warn = func(registry.Diagnostic) {}
		own := earlier
		earlier = map[*mcpclient.Source]listed{}
		maps.Copy(earlier, own)
		maps.Copy(earlier, opts.Base.listed)
		again = slices.DeleteFunc(slices.Clone(again), func(source registry.Source) bool {
			server, _ := source.(*mcpclient.Source)
			_, ok := opts.Base.listed[server]
			return ok
		})
	}
	var tools []engine.Found
	var err error
	if o.Registry, tools, err = opts.Whole.Select(opts.Whole.context(ctx), o.Session); err != nil {
		return nil, err
	}
	if earlier == nil {
		for _, d := range o.Session.Tools.Diagnostics(o.Registry) {
			o.warn(d)
		}
	}
	o.readInstructions()
	if o.Client != "" {
		o.addLoginTools(ctx, opts.LogIn)
	}
	if o.whole, err = o.declare(opts.Whole, o.Registry, append(tools, o.loginTools(&opts.Whole)...)); err != nil {
		return nil, err
	}
	o.readOfferings(ctx, opts.Whole.Servers, earlier, again)
	o.Failed = o.Servers.Failed(o.Registry)
	if o.Rules, err = o.Session.Calls.OfferRules(o.Registry); err != nil {
		return nil, err
	}
	if before := opts.Before; before != nil {
		before.mu.Lock()
		inUse := slices.Collect(maps.Keys(before.views)) // the profiles whose clients have sent requests
		before.mu.Unlock()
		for _, profile := range inUse {
			o.View(ctx, profile)
		}
	}
	return o, nil
}

// View returns what clients of a profile are offered; "" is everything. A view is made when first
// needed, within ctx. If there is no such profile, nothing is offered.
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

// declare declares the tools of a profile in the format mcp, under their names in the whole
// registry.
func (o *Offer) declare(p Profile, reg *registry.Registry, tools []engine.Found) (*View, error) {
	format, err := provider.Lookup("mcp")
	if err != nil {
		return nil, err
	}
	out := &View{Offer: o, profile: p, tools: make([]*Declaration, 0, len(tools))}
	models := len(tools)
	// Tools for pages are offered only if other tools of their servers are.
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
