// Package offer decides what a client is offered: which tools, prompts and resources, under which
// names, and from which server if several list the same.
//
// An [Offer] is made from a session, for all clients or for one whose logins reach some of the
// servers. A [View] is the part of it for the clients of a profile. Names in requests are looked up
// in the view, so that lists, calls and reads cannot disagree. Rules that deny something to a
// caller apply to both. When the settings or servers' lists change, a new offer is made; an
// existing one never changes.
//
// The package does not know who is connected, and answers only requests for lists.
package offer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Offer is what a session offers. It is safe for concurrent use. Its exported fields must not be
// changed.
type Offer struct {
	Session  *engine.Session
	Registry *registry.Registry
	// Client is the client that the offer was made for; "" means all.
	Client string
	// Servers are the servers of the session as the client reaches them.
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
	declared map[*registry.Tool]*Declaration // shared by views
	digests  map[[2]string]Digest            // of lists, by profile and kind
}

// View is what the clients of a profile are offered.
type View struct {
	*Offer
	profile Profile
	tools   []*Declaration   // by the name as declared
	faulty  []*registry.Tool // those that cannot be declared
	// apps is the same view with tools that only pages may call; nil if there are none.
	apps *View
}

// WithApps returns the view for clients that show pages of tools (MCP Apps).
func (v *View) WithApps() *View {
	if v.apps != nil {
		return v.apps
	}
	return v
}

// Context returns a context that limits which tools can be found, and which servers named, to those
// of the view.
func (v *View) Context(ctx context.Context) context.Context { return v.profile.context(ctx) }

// Declaration is a tool and how clients see it.
type Declaration struct {
	engine.Found
	Name string          // as declared
	Raw  json.RawMessage // the declaration as clients get it
}

// Tool returns the tool that is offered under a name; nil if there is none.
func (v *View) Tool(name string) *Declaration {
	at, ok := slices.BinarySearchFunc(v.tools, name, func(d *Declaration, name string) int {
		return strings.Compare(d.Name, name)
	})
	if !ok {
		return nil
	}
	return v.tools[at]
}

// Digest identifies the content of a list.
type Digest [sha256.Size]byte

// Profile is a part of the registry that some clients are offered in place of the whole.
type Profile struct {
	Name string
	// Groups are globs of groups whose members get the profile. If empty, every client may use it.
	Groups []string
	// Select loads the part of a session that it needs, and returns the registry and the offered
	// tools in registry order.
	Select func(context.Context, *engine.Session) (*registry.Registry, []engine.Found, error)
	// Tools reports whether a tool is part of the profile and can be reached at all, also through
	// other tools. If nil, all can.
	Tools func(*registry.Tool) bool
	// Servers reports whether a server's prompts and resources are part of the profile. If nil,
	// those of all servers are.
	Servers func(name string) bool
}

func (p *Profile) shows(t *registry.Tool) bool { return p.Tools == nil || p.Tools(t) }

// showsServer reports whether a server's prompts and resources are part of the profile.
func (p *Profile) showsServer(name string) bool { return p.Servers == nil || p.Servers(name) }

// isFor reports whether one of a caller's groups gets the profile.
func (p *Profile) isFor(groups []string) bool {
	return slices.ContainsFunc(p.Groups, func(glob string) bool {
		return slices.ContainsFunc(groups, func(group string) bool { return text.MatchName(glob, group) })
	})
}

// context returns a context that limits which tools can be found, and which servers named, to those
// of the profile.
func (p *Profile) context(ctx context.Context) context.Context {
	return engine.WithScope(ctx, p.Tools, p.Servers)
}

// Profiles are the profiles of a session.
type Profiles []Profile

// Has reports whether a profile of this name exists.
func (p Profiles) Has(name string) bool {
	return slices.ContainsFunc(p, func(one Profile) bool { return one.Name == name })
}

// For returns the profile of a client: the one that its token is limited to, one that its groups
// are limited to, or the one in the URL. "" means that the client is offered everything. For
// returns false if the client may not use the URL.
func (p Profiles) For(token string, groups []string, address string) (profile string, ok bool) {
	if token != "" {
		return token, address == "" || address == token
	}
	var bound []string
	for _, one := range p {
		if one.isFor(groups) {
			bound = append(bound, one.Name)
		}
	}
	switch {
	case len(bound) > 0 && address == "":
		return bound[0], true
	case len(bound) > 0:
		return address, slices.Contains(bound, address)
	case address == "":
		return "", true
	}
	return address, slices.ContainsFunc(p, func(one Profile) bool {
		return one.Name == address && len(one.Groups) == 0
	})
}

// maxInstructions limits the servers' own instructions that clients get, in bytes.
const maxInstructions = 8 << 10

// readInstructions reads the instructions of the servers, and warns about those that are withheld.
func (o *Offer) readInstructions() {
	for _, one := range o.Session.Instructions(o.Registry, o.Servers.On()) {
		if f := one.Withheld; f != nil {
			o.warn(registry.Warning("instructions_withheld", registry.MCPPrefix+one.Server,
				fmt.Sprintf("clients do not get the instructions of server %q: %s: %s", one.Server, f.Rule, f.Words),
				"toolreg servers check shows what was found; check.silence accepts it"))
			continue
		}
		o.instructions = append(o.instructions, one)
	}
}

// Instructions returns the instructions of servers whose tools the caller of ctx is offered.
func (v *View) Instructions(ctx context.Context) string {
	offered := map[string]bool{}
	for _, t := range v.Registry.Tools() {
		if t.OfServer() && !offered[t.Server] && v.profile.shows(t) &&
			!(v.Rules.HasCallers() && v.Rules.DeniesTool(ctx, t)) {
			offered[t.Server] = true
		}
	}
	return joinInstructions(slices.DeleteFunc(slices.Clone(v.instructions), func(one engine.Instructions) bool {
		return !offered[one.Server]
	}))
}

// joinInstructions returns instructions, each under the name of its server. Lines are indented, so that none
// can pass for another server's. If the whole is too long, each server gets the same share.
func joinInstructions(all []engine.Instructions) string {
	size := 0
	for _, one := range all {
		size += len(one.Text)
	}
	var b strings.Builder
	for _, one := range all {
		if most := maxInstructions / len(all); size > maxInstructions && len(one.Text) > most {
			one.Text = text.Head(one.Text, most) + " […]"
		}
		fmt.Fprintf(&b, "\n\nInstructions of the MCP server %s:", text.Quote(one.Server))
		for _, line := range strings.FieldsFunc(text.Valid(one.Text), func(r rune) bool {
			return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) // characters that may begin a line where a text is shown
		}) {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}
