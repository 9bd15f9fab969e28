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
	"slices"
	"strings"
	"sync"

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
