// Package offer answers what a client is offered: which tools, prompts and resources there are for it,
// under which names, and which of two servers has what both list.
//
// An [Offer] is made of a session, for all clients or for the one whose logins reach some of the servers.
// A [View] is what the clients of a profile are offered of it; what a request names is looked up there, so
// that lists, calls and reads cannot disagree. The rules that deny something to a caller apply to both. A
// change of the settings, or of what servers list, leads to a new offer: one that was made stays as it is.
//
// The package does not know who is connected, and answers no request but those for lists.
package offer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// Offer is what a session offers. It is safe for concurrent use. Its exported fields do not change.
type Offer struct {
	Session  *engine.Session
	Registry *registry.Registry
	// Client is the name of the client that it was made for. It is empty if it is for all.
	Client string
	// Servers are those of the session, as the client reaches them.
	Servers *sources.Servers
	// Failed are the servers and APIs that could not list their tools.
	Failed []registry.Source
	// Rules decide about prompts and resources.
	Rules    *engine.OfferRules
	Profiles Profiles

	whole        *View // of clients without a profile
	logins       []*loginTool
	instructions []engine.Instructions

	prompts   map[string]*Prompt // by the server's name, if it is free, and by server__name
	offerings []*offering        // in the order of the settings
	listed    map[*mcpclient.Source]listed

	warn func(registry.Diagnostic)

	mu       sync.Mutex
	views    map[string]*View                // of profiles
	declared map[*registry.Tool]*Declaration // that views share
	digests  map[[2]string]Digest            // of lists, by profile and kind
}

// Options say of what an [Offer] is made. Session, Whole, Warn and, for a client, Base and LogIn are
// required.
type Options struct {
	Session *engine.Session
	// Whole is what clients without a profile are offered.
	Whole    Profile
	Profiles Profiles
	// Base is the offer for all, if one for a client is made. What it lists is the same for the client.
	Base *Offer
	// Before is the offer that the new one replaces. If it is of the same session, the servers that it
	// has are asked for prompts and resources only if they are in Again, and what they listed stays if
	// they fail. It may be nil.
	Before *Offer
	Again  []registry.Source
	// LogIn runs the tool by which the user of a client logs in to a server.
	LogIn func(context.Context, *mcpclient.Source) (registry.Result, error)
	// Warn receives what cannot be offered. For a client it receives nothing: the offer for all has
	// warned already.
	Warn func(registry.Diagnostic)
}

// New makes the offer for the client whose token is that of the caller of ctx, or for all if ctx has no
// caller. The views of the profiles that Before had are made at once.
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
	if opts.Before != nil {
		for _, profile := range opts.Before.profilesInUse() {
			o.View(ctx, profile)
		}
	}
	return o, nil
}

// profilesInUse returns the profiles whose clients have sent requests.
func (o *Offer) profilesInUse() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.views))
}

// OwnOf returns the servers of a client that are reached with its logins.
func OwnOf(servers *sources.Servers) []*mcpclient.Source {
	return slices.DeleteFunc(servers.On(), func(server *mcpclient.Source) bool {
		return !server.Settings().LoginPerClient()
	})
}

// OwnServers returns those of the offer for a client. It returns nil for that for all, in which the
// logins are the person's.
func (o *Offer) OwnServers() []*mcpclient.Source {
	if o.Client == "" {
		return nil
	}
	return OwnOf(o.Servers)
}

// OwnServer returns the server of a tool if it is reached with the login of the client. Otherwise it
// returns nil.
func (o *Offer) OwnServer(t *registry.Tool) *mcpclient.Source {
	for _, server := range o.OwnServers() {
		if server.Name() == t.Source {
			return server
		}
	}
	return nil
}

// ClientOf returns the client with whose login a server is reached. It is empty if it is the same for
// all.
func (o *Offer) ClientOf(server *mcpclient.Source) string {
	if server.Settings().LoginPerClient() {
		return o.Client
	}
	return ""
}
