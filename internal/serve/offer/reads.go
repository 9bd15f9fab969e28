package offer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/uri"
)

// Prompt returns the prompt that the caller of ctx is offered under a name. The error says that
// there is none or, if a rule denies it, is an [*engine.OfferDenied].
func (v *View) Prompt(ctx context.Context, name string) (*Prompt, error) {
	p := v.prompts[name]
	if p == nil || !v.profile.showsServer(p.Server.Info().Name) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)}
	}
	return p, v.Rules.Check(ctx, p.Offer())
}

// shown is what a caller is offered to read from the servers of its view.
type shown struct {
	*View
	offerings []*offering
	// permits reports whether the rules let the caller know of a resource or template of a server.
	permits func(server, uri string) bool
}

// shown returns what the caller of ctx is offered to read.
func (v *View) shown(ctx context.Context) *shown {
	out := &shown{View: v, permits: func(server, uri string) bool {
		return v.Rules.Check(ctx, engine.Offer{Server: server, URI: uri}) == nil
	}}
	for _, one := range v.offerings {
		if v.profile.showsServer(one.name) {
			out.offerings = append(out.offerings, one)
		}
	}
	return out
}

// since returns when a resource or template was first seen at a server, relative to others. It
// returns false if it belongs to another server that offers it to the caller.
func (s *shown) since(server string, r *Resource) (since int, ok bool) {
	owner, since := s.Session.OfferOwners.Owner(r.ownedAs(server))
	switch {
	case owner == server:
		return since, true
	case owner != "" && s.permits(owner, r.URI) &&
		slices.ContainsFunc(s.offerings, func(one *offering) bool { return one.name == owner }):
		return 0, false
	}
	return math.MaxInt, true
}

// listResources returns the resources, or the templates, that the caller is offered: for each URI,
// the one that would be read.
func (s *shown) listResources(templates bool) []*Resource {
	var out []*Resource
	seen := map[string]bool{}
	for _, one := range s.offerings {
		for _, r := range one.all() {
			if r.IsTemplate() != templates || seen[r.URI] || !s.permits(one.name, r.URI) {
				continue
			}
			if templates {
				if _, ok := s.since(one.name, r); !ok {
					continue
				}
			} else if read, _ := s.findResource(r.URI); read != r {
				continue
			}
			seen[r.URI] = true
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *Resource) int { return strings.Compare(a.URI, b.URI) })
	return out
}

// findResource returns the resource or template by which a URI is read. If several match, it is the
// one that was seen first; of those seen at the same time, it is that of the first server in
// settings order, and there a URI before a template. What a server has offered before stays with it
// while it is unavailable; found is then nil. A URI is compared loosely only if no template matches
// it strictly, so that it never changes its owner.
func (s *shown) findResource(u string) (found *Resource, from *offering) {
	if found, from = s.find(u, false); from == nil {
		found, from = s.find(u, true)
	}
	return found, from
}

// find is findResource with strict or loose comparison.
func (s *shown) find(u string, loosely bool) (found *Resource, from *offering) {
	first, canonical := 0, uri.Canonical(u)
	for _, one := range s.offerings {
		try := func(r *Resource, listed bool) {
			if !s.permits(one.name, r.URI) {
				return
			}
			since, ok := s.since(one.name, r)
			if !ok || from != nil && since >= first {
				return
			}
			if found, from, first = r, one, since; !listed {
				found = nil
			}
		}
		if r := one.exact[u]; r != nil {
			try(r, true)
		}
		for _, r := range one.templates {
			if r.matches(u, loosely) {
				try(r, true)
			}
		}
		for _, r := range one.before {
			if !r.IsTemplate() && r.URI == canonical || r.IsTemplate() && r.matches(u, loosely) {
				try(r, false)
			}
		}
	}
	return found, from
}

// Resource returns the resource or template by which the caller of ctx reads a URI. The error says
// that there is none, is an [*engine.OfferDenied] if a rule denies it, or is an internal error if
// its server could not tell.
func (v *View) Resource(ctx context.Context, uri string) (*Resource, error) {
	r, from := v.shown(ctx).findResource(uri)
	if r == nil && from != nil && !from.known {
		return nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("resource %q belongs to server %q, which could not list its resources",
				uri, from.name),
		}
	}
	if r == nil {
		r = v.page(uri)
	}
	if r != nil {
		return r, v.Rules.Check(ctx, r.Offer(uri))
	}
	for _, one := range v.offerings { // it may be denied to this caller
		if r := one.exact[uri]; r != nil && v.profile.showsServer(one.name) {
			if err := v.Rules.Check(ctx, r.Offer(uri)); err != nil {
				return nil, err
			}
		}
	}
	return nil, mcp.ResourceNotFoundError(uri)
}

// page returns the page of a tool that the caller is offered (MCP Apps), which its server need not
// list. It returns nil if the URI is not that of a page.
func (v *View) page(u string) *Resource {
	for _, t := range v.tools {
		if !hasPage(t.Tool, u) {
			continue
		}
		for _, server := range v.Servers.On() {
			if server.Name() == t.Tool.Source {
				return &Resource{Server: server, URI: u}
			}
		}
	}
	return nil
}

// hasPage reports whether u is the URI of a tool's page.
func hasPage(t *registry.Tool, u string) bool {
	page, _ := jsonx.Text(jsonx.Get(jsonx.Get(t.MCP.Meta, "ui"), "resourceUri"))
	return page == u && strings.HasPrefix(u, "ui://")
}

// Template returns the resource or template that the caller of ctx is offered under a URI or
// template, for completion. Errors are those of [View.Resource].
func (v *View) Template(ctx context.Context, u string) (*Resource, error) {
	for _, r := range v.shown(ctx).listResources(true) {
		if r.URI == u {
			return r, nil
		}
	}
	return v.Resource(ctx, u)
}

// ServerOf returns the named server if it has the resource or, for one of its tools, the page with
// this URI, and client is what [Offer.ClientOf] returns for it; otherwise nil.
func (o *Offer) ServerOf(name, client, uri string) *mcpclient.Source {
	for _, one := range o.offerings {
		if one.name != name || o.ClientOf(one.server) != client {
			continue
		}
		if one.matches(uri) || slices.ContainsFunc(o.Registry.Tools(), func(t *registry.Tool) bool {
			return t.Source == one.server.Name() && hasPage(t, uri)
		}) {
			return one.server
		}
	}
	return nil
}
