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

// Digest is the same for equal lists.
type Digest [sha256.Size]byte

// Profile is a part of the registry that some clients are offered instead of all of it.
type Profile struct {
	Name string
	// Groups are globs of the groups whose members get the profile. If it is empty, every
	// client may use it.
	Groups []string
	// Select loads what it needs of a session and returns the registry and the tools that are offered,
	// in its order.
	Select func(context.Context, *engine.Session) (*registry.Registry, []engine.Found, error)
	// Tools reports whether a tool is part of the profile, so that it can be reached at all, also through
	// others. A nil Tools means that all are.
	Tools func(*registry.Tool) bool
	// Servers reports whether the prompts and resources of a server are part of the profile. A nil
	// Servers means that those of all are.
	Servers func(name string) bool
}

func (p *Profile) shows(t *registry.Tool) bool { return p.Tools == nil || p.Tools(t) }

// showsServer reports whether prompts and resources of a server are part of the profile.
func (p *Profile) showsServer(name string) bool { return p.Servers == nil || p.Servers(name) }

// isFor reports whether one of a caller's groups gets the profile.
func (p *Profile) isFor(groups []string) bool {
	return slices.ContainsFunc(p.Groups, func(glob string) bool {
		return slices.ContainsFunc(groups, func(group string) bool { return text.MatchName(glob, group) })
	})
}

// context returns a context in which tools outside the profile cannot be found, and its servers alone
// are named.
func (p *Profile) context(ctx context.Context) context.Context {
	return engine.WithScope(ctx, p.Tools, p.Servers)
}

// Profiles are the profiles of a session.
type Profiles []Profile

// Has reports whether there is a profile of a name.
func (p Profiles) Has(name string) bool {
	return slices.ContainsFunc(p, func(one Profile) bool { return one.Name == name })
}

// For returns the name of the profile of a client: the one that its token is bound to, one of those that its
// groups are bound to, or the one that the address names. It is empty if the client is offered everything.
// For reports false if the client may not use the address.
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

// maxInstructions is how many bytes of the servers' own instructions clients get.
const maxInstructions = 8 << 10

// readInstructions reads what the servers say to models. It warns about what is withheld.
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

// Instructions returns what the servers of which the caller of ctx is offered tools say to its model.
func (v *View) Instructions(ctx context.Context) string {
	offered := map[string]bool{}
	for _, t := range v.Registry.Tools() {
		if t.OfServer() && !offered[t.Server] && v.profile.shows(t) &&
			!(v.Rules.HasCallers() && v.Rules.DeniesTool(ctx, t)) {
			offered[t.Server] = true
		}
	}
	return joined(slices.DeleteFunc(slices.Clone(v.instructions), func(one engine.Instructions) bool {
		return !offered[one.Server]
	}))
}

// joined returns instructions, each under the name of its server. Their lines are indented, so that
// none can pass for those of another server. If they are too long together, each gets the same part.
func joined(all []engine.Instructions) string {
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
			return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) // what may begin a line where a text is shown
		}) {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}
