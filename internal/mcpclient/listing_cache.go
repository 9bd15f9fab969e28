package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Protocols remembers how servers were reached, so that the method that worked
// is tried first. A wrong entry costs one attempt.
type Protocols interface {
	// LoadProtocol returns the value that an earlier run passed to
	// SaveProtocol, or "".
	LoadProtocol(context.Context) string
	// SaveProtocol is called after each handshake with the generation in use:
	// "legacy", "modern" or "sse".
	SaveProtocol(context.Context, string)
}

// Listings caches the listings of servers.
type Listings interface {
	// Load returns a listing to use instead of the server's own. ok is false if the
	// server should be asked. If the server must not be asked, Load returns an
	// error.
	Load(context.Context) (l Listing, ok bool, err error)
	// Save stores a listing that the server has just sent.
	Save(context.Context, Listing)
	// SaveOffers stores the prompts or resources that the server has just listed,
	// for completion.
	SaveOffers(ctx context.Context, kind string, offers []Offer)
}

// Failures remembers recent failures of servers, so that not every command
// waits for a dead one.
type Failures interface {
	// LoadFailure returns how the server failed recently, or nil if it should
	// be asked.
	LoadFailure(context.Context) error
	// SaveFailure is called with the server's failure, or nil if it answered.
	SaveFailure(context.Context, error)
}

// Listing is the server's description of itself and its tools, byte for byte.
type Listing struct {
	Tools    [][]byte // elements of tools/list, in order
	Facts    Facts
	ListedAt time.Time // when the server was asked; set by Load
}

// Facts is the rest of a [Listing].
type Facts struct {
	Cut             string          `json:"cut,omitempty"` // why not all tools were listed
	Loop            bool            `json:"loop,omitempty"`
	Transport       string          `json:"transport"`
	ProtocolVersion string          `json:"protocolVersion"`
	ServerInfo      json.RawMessage `json:"serverInfo,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Counted         bool            `json:"counted,omitempty"` // Prompts and Resources are known
	Prompts         int             `json:"prompts,omitempty"`
	Resources       int             `json:"resources,omitempty"`
}

// loadListing creates tools from a stored listing, as if the server had just sent
// it.
func (s *Source) loadListing(ctx context.Context) (tools []registry.Tool, diags []registry.Diagnostic, ok bool, err error) {
	if s.opts.Listings == nil {
		return nil, nil, false, nil
	}
	l, ok, err := s.opts.Listings.Load(ctx)
	if err != nil {
		return nil, nil, false, s.opts.errorf("cache", err, err.Error())
	}
	if !ok {
		return nil, nil, false, nil
	}
	items := make([]json.RawMessage, len(l.Tools))
	for i, item := range l.Tools {
		items[i] = item
	}
	headers := l.Facts.Transport == transportHTTP && l.Facts.ProtocolVersion >= wire.FirstModern
	tools, diags = s.tools(listing{items: items, cut: l.Facts.Cut, loop: l.Facts.Loop}, headers)
	for i := range tools {
		tools[i].Run = s.confirmed(tools[i])
	}
	s.status.update(func(i *Info) {
		i.State, i.Tools, i.CachedAt = StateCached, usable(tools), &l.ListedAt
		i.Transport, i.ProtocolVersion = l.Facts.Transport, l.Facts.ProtocolVersion
		i.ServerInfo, i.Instructions = l.Facts.ServerInfo, l.Facts.Instructions
		i.Prompts, i.Resources = l.Facts.Prompts, l.Facts.Resources
	})
	return tools, diags, true, nil
}

// storeListing stores what the server listed.
func (s *Source) storeListing(ctx context.Context, l listing, tools []registry.Tool, counted bool) {
	s.mu.Lock()
	s.listed = tools
	s.mu.Unlock()
	info := s.status.get()
	if s.opts.Listings == nil {
		return
	}
	out := Listing{Tools: make([][]byte, len(l.items)), Facts: Facts{Cut: l.cut, Loop: l.loop, Transport: info.Transport,
		ProtocolVersion: info.ProtocolVersion, ServerInfo: info.ServerInfo, Instructions: info.Instructions, Counted: counted}}
	if counted {
		out.Facts.Prompts, out.Facts.Resources = info.Prompts, info.Resources
	}
	for i, item := range l.items {
		out.Tools[i] = item
	}
	s.opts.Listings.Save(ctx, out)
}

// errOutdated reports that a call was not made because its tool is not the one
// that the decision was about.
var errOutdated = errors.New("the server's definition of it differs from the cached one")

// confirmed runs a tool of a stored listing after checking that the server still
// defines it the same way: decisions and approvals apply only to that
// definition. Callers usually renew the listing first; this covers those that
// did not.
func (s *Source) confirmed(t registry.Tool) func(context.Context, registry.Call) (registry.Result, error) {
	return func(ctx context.Context, call registry.Call) (registry.Result, error) {
		if err := s.confirm(ctx, &t); err != nil {
			return registry.Result{}, err
		}
		return t.Run(ctx, call)
	}
}

func (s *Source) confirm(ctx context.Context, t *registry.Tool) error {
	s.confirming.Lock()
	defer s.confirming.Unlock()
	s.mu.Lock()
	listed := s.listed
	s.mu.Unlock()
	if listed == nil {
		var err error
		if listed, _, err = s.connectAndList(ctx); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(listed, func(now registry.Tool) bool { return now.ServerTool == t.ServerTool })
	if i < 0 || listed[i].Fingerprint() != t.Fingerprint() {
		return s.opts.errorf("tools/call", errOutdated, fmt.Sprintf("tool %s was not called: %s", text.Quote(t.ServerTool), errOutdated))
	}
	return nil
}
