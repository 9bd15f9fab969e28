package serve

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/uri"
)

// offerOf describes a server's prompt, with the name under which it is listed, or its resource
// (prompt is ""), with its URI, for the policy.
func offerOf(server *mcpclient.Source, prompt, name string) engine.Offer {
	o := engine.Offer{Server: server.Info().Name, Prompt: prompt}
	if prompt == "" {
		o.URI = name
	} else {
		o.Name = name
	}
	return o
}

// permit returns an [*engine.OfferDenied] if the policy denies a prompt or a resource to the caller
// of ctx.
func (o *offer) permit(ctx context.Context, about engine.Offer) error {
	if denied := o.rules.Check(ctx, about); denied != nil {
		return denied
	}
	return nil
}

// promptOf returns the prompt of a name that the caller is offered. The error is that of an unknown
// prompt, or that of permit.
func (v *view) promptOf(ctx context.Context, name string) (*prompt, error) {
	p := v.prompts[name]
	if p == nil || !v.profile.showsServer(p.server.Info().Name) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)}
	}
	return p, v.permit(ctx, offerOf(p.server, p.is.Name, p.declared))
}

// shown is what a caller is offered to read of the servers of its view.
type shown struct {
	*view
	ctx     context.Context
	servers []*offering
}

// shown returns what the caller of ctx is offered to read.
func (v *view) shown(ctx context.Context) *shown {
	out := &shown{view: v, ctx: ctx}
	for _, one := range v.offers.servers {
		if v.profile.showsServer(one.name) {
			out.servers = append(out.servers, one)
		}
	}
	return out
}

// permits reports whether the rules let the caller know of a server's resource or template.
func (s *shown) permits(server, uri string) bool {
	return s.permit(s.ctx, engine.Offer{Server: server, URI: uri}) == nil
}

// since returns when, compared with others, a resource or a template of a server was first seen there.
// It reports false if it belongs to another server that the caller is offered it from.
func (s *shown) since(server string, r *resource) (since int, ok bool) {
	owner, since := s.owners.Owner(r.ownedAs(server))
	switch {
	case owner == server:
		return since, true
	case owner != "" && s.permits(owner, r.uri()) &&
		slices.ContainsFunc(s.servers, func(one *offering) bool { return one.name == owner }):
		return 0, false
	}
	return math.MaxInt, true
}

// list returns the resources, or the templates, that the caller is offered: of each URI the one that
// would be read.
func (s *shown) list(templates bool) []*resource {
	var out []*resource
	seen := map[string]bool{}
	for _, one := range s.servers {
		for _, r := range one.all() {
			if (r.like != nil) != templates || seen[r.uri()] || !s.permits(one.name, r.uri()) {
				continue
			}
			if templates {
				if _, ok := s.since(one.name, r); !ok {
					continue
				}
			} else if read, _ := s.find(r.uri()); read != r {
				continue
			}
			seen[r.uri()] = true
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *resource) int { return strings.Compare(a.uri(), b.uri()) })
	return out
}

// find returns the resource or the template by which a URI is read: the one that was seen first, which
// is that of the first server in the order of the settings, and a URI before a template, where servers
// came together. What a server has offered before stays with it while it is away; then the
// resource is nil.
func (s *shown) find(u string) (found *resource, from *offering) {
	first, canonical := 0, uri.Canonical(u)
	for _, one := range s.servers {
		try := func(r *resource, listed bool) {
			if !s.permits(one.name, r.uri()) {
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
			if r.matches(u) {
				try(r, true)
			}
		}
		for _, r := range one.before {
			if r.is != nil && r.is.URI == canonical || r.like != nil && r.matches(u) {
				try(r, false)
			}
		}
	}
	return found, from
}

// resourceOf returns the resource or the template by which the caller reads a URI. The error is that
// of an unknown resource where it is not offered, that of permit where a rule denies it, and an internal
// error where its server could not say whether it has it.
func (v *view) resourceOf(ctx context.Context, u string) (*resource, error) {
	r, from := v.shown(ctx).find(u)
	switch {
	case r != nil:
		return r, v.permit(ctx, engine.Offer{Server: from.name, URI: u})
	case from != nil && !from.known:
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("resource %q belongs to server %q, which could not list its resources", u, from.name),
		}
	}
	if r := v.pageOf(u); r != nil {
		return r, v.permit(ctx, offerOf(r.server, "", u))
	}
	for _, one := range v.offers.servers { // it may be denied to this caller
		if one.exact[u] != nil && v.profile.showsServer(one.name) {
			if err := v.permit(ctx, engine.Offer{Server: one.name, URI: u}); err != nil {
				return nil, err
			}
		}
	}
	return nil, mcp.ResourceNotFoundError(u)
}

// pageOf returns the page of a tool that the caller is offered (MCP Apps), which its server need not
// list. It returns nil if the URI is not that of one.
func (v *view) pageOf(u string) *resource {
	if !strings.HasPrefix(u, "ui://") {
		return nil
	}
	servers, _, _ := v.servers.Named() // without a name there is no error
	for _, t := range v.tools {
		page, _ := jsonx.Text(jsonx.Get(jsonx.Get(t.Tool.MCP.Meta, "ui"), "resourceUri"))
		i := slices.IndexFunc(servers, func(server *mcpclient.Source) bool { return server.Name() == t.Tool.Source })
		if page == u && i >= 0 {
			return &resource{server: servers[i], is: &mcp.Resource{URI: u}}
		}
	}
	return nil
}

// templateOf returns what the caller is offered under a URI or a template, for completion.
func (v *view) templateOf(ctx context.Context, u string) (*resource, error) {
	for _, r := range v.shown(ctx).list(true) {
		if r.like.URITemplate == u {
			return r, nil
		}
	}
	return v.resourceOf(ctx, u)
}

// list answers a request for a list with what the caller is offered.
func (v *view) list(ctx context.Context, req mcp.Request) (mcp.Result, error) {
	cursor, cacheable := "", mcp.Cacheable{CacheScope: cacheScope}
	switch p := req.GetParams().(type) {
	case *mcp.ListToolsParams:
		if p != nil {
			cursor = p.Cursor
		}
		tools, next, err := pageOf(v.tools, cursor, func(d *declaration) string { return d.sdk.Name })
		return listedTools{&mcp.ListToolsResult{Cacheable: cacheable, NextCursor: next}, v.permitted(ctx, tools)}, err
	case *mcp.ListPromptsParams:
		if p != nil {
			cursor = p.Cursor
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(v.prompts)) {
			p := v.prompts[name]
			if name == p.declared && v.profile.showsServer(p.server.Info().Name) &&
				v.permit(ctx, offerOf(p.server, p.is.Name, name)) == nil {
				names = append(names, name)
			}
		}
		names, next, err := pageOf(names, cursor, func(name string) string { return name })
		page := &mcp.ListPromptsResult{Cacheable: cacheable, NextCursor: next, Prompts: []*mcp.Prompt{}}
		for _, name := range names {
			if is := convert[mcp.Prompt](v.prompts[name].is); is != nil {
				is.Name = name
				page.Prompts = append(page.Prompts, is)
			}
		}
		return page, err
	case *mcp.ListResourcesParams:
		if p != nil {
			cursor = p.Cursor
		}
		all, next, err := pageOf(v.shown(ctx).list(false), cursor, (*resource).uri)
		page := &mcp.ListResourcesResult{Cacheable: cacheable, NextCursor: next, Resources: []*mcp.Resource{}}
		for _, r := range all {
			page.Resources = append(page.Resources, r.is)
		}
		return page, err
	case *mcp.ListResourceTemplatesParams:
		if p != nil {
			cursor = p.Cursor
		}
		all, next, err := pageOf(v.shown(ctx).list(true), cursor, (*resource).uri)
		page := &mcp.ListResourceTemplatesResult{
			Cacheable: cacheable, NextCursor: next, ResourceTemplates: []*mcp.ResourceTemplate{},
		}
		for _, r := range all {
			page.ResourceTemplates = append(page.ResourceTemplates, r.like)
		}
		return page, err
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
}

// pageOf returns the page of a sorted list that a cursor names, and the cursor of the next one.
func pageOf[T any](all []T, cursor string, key func(T) string) (page []T, next string, err error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this server"}
	}
	first, found := slices.BinarySearchFunc(all, string(after), func(one T, after string) int {
		return strings.Compare(key(one), after)
	})
	if found {
		first++
	}
	if all = all[first:]; len(all) > pageSize {
		all = all[:pageSize]
		next = base64.RawURLEncoding.EncodeToString([]byte(key(all[pageSize-1])))
	}
	return all, next, nil
}
