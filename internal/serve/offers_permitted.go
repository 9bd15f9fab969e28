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

	"github.com/toolreg/toolreg/internal/caller"
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

// permit returns the error with which to answer a request for a prompt or a resource that the
// policy denies to the caller; nil if it allows it. The refusal is logged.
func (s *Server) permit(ctx context.Context, o *offer, method string, about engine.Offer) error {
	denied := o.rules.Check(ctx, about)
	if denied == nil {
		return nil
	}
	s.opts.Log.Warn("request refused", "method", method, "caller", caller.Name(ctx), "reason", denied.Error())
	o.rules.Log(ctx, method, denied)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: denied.Error()}
}

// absent returns the error for a prompt or a resource that the caller is not offered, whether
// or not others are. It is logged.
func (s *Server) absent(ctx context.Context, method string, err error) error {
	s.opts.Log.Warn("request refused", "method", method, "caller", caller.Name(ctx), "reason", err.Error())
	return err
}

// promptOf returns the prompt of a name that the caller is offered.
func (s *Server) promptOf(ctx context.Context, o *offer, method, name string) (*prompt, error) {
	p := o.prompts[name]
	if p == nil || !s.view(o, caller.Profile(ctx)).profile.showsServer(p.server.Info().Name) {
		return nil, s.absent(ctx, method, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", name)})
	}
	return p, s.permit(ctx, o, method, offerOf(p.server, p.is.Name, p.declared))
}

// shown are what a caller is offered to read of the servers of its view.
type shown struct {
	*offer
	ctx     context.Context
	servers []*offering
}

// shown returns what the caller of ctx is offered to read.
func (o *offer) shown(ctx context.Context, v *view) *shown {
	out := &shown{offer: o, ctx: ctx}
	for _, one := range o.offers.servers {
		if v.profile.showsServer(one.name) {
			out.servers = append(out.servers, one)
		}
	}
	return out
}

// permits reports whether the rules let the caller know of a server's resource or template.
func (s *shown) permits(server, uri string) bool {
	return s.rules.Check(s.ctx, engine.Offer{Server: server, URI: uri}) == nil
}

// since returns when, compared with others, a resource or a template of a server was first seen there.
// It reports false if it belongs to another server that the caller is offered it from.
func (s *shown) since(server string, r *resource) (since int, ok bool) {
	owner, since := s.owners.Owner(r.ownedAs(server))
	switch {
	case owner == server:
		return since, true
	case owner != "" && s.permits(owner, r.uri()) && slices.ContainsFunc(s.servers, func(one *offering) bool { return one.name == owner }):
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
// of an unknown resource where it is not offered, and of the rule that denies it.
func (s *Server) resourceOf(ctx context.Context, o *offer, method, u string) (*resource, error) {
	r, from := o.shown(ctx, s.view(o, caller.Profile(ctx))).find(u)
	switch {
	case r != nil:
		return r, s.permit(ctx, o, method, engine.Offer{Server: from.name, URI: u})
	case from != nil && !from.known:
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("resource %q belongs to server %q, which could not list its resources", u, from.name),
		}
	}
	if r := o.pageOf(s.viewOf(ctx, o, caller.Profile(ctx)), u); r != nil {
		return r, s.permit(ctx, o, method, offerOf(r.server, "", u))
	}
	for _, one := range o.offers.servers { // it may be denied to this caller
		if r := one.exact[u]; r != nil && s.view(o, caller.Profile(ctx)).profile.showsServer(one.name) {
			if err := s.permit(ctx, o, method, engine.Offer{Server: one.name, URI: u}); err != nil {
				return nil, err
			}
		}
	}
	return nil, s.absent(ctx, method, mcp.ResourceNotFoundError(u))
}

// pageOf returns the page of a tool that the caller is offered (MCP Apps), which its server need not
// list; nil if the URI is not that of one.
func (o *offer) pageOf(v *view, u string) *resource {
	if !strings.HasPrefix(u, "ui://") {
		return nil
	}
	servers, _, _ := o.servers.Named() // without a name there is no error
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
func (s *Server) templateOf(ctx context.Context, o *offer, u string) (*resource, error) {
	from := o.shown(ctx, s.view(o, caller.Profile(ctx)))
	for _, r := range from.list(true) {
		if r.like.URITemplate == u {
			return r, nil
		}
	}
	return s.resourceOf(ctx, o, "completion/complete", u)
}

// list answers a request for a list with what the caller is offered.
func (o *offer) list(ctx context.Context, v *view, req mcp.Request) (mcp.Result, error) {
	cursor, cacheable := "", mcp.Cacheable{CacheScope: cacheScope}
	switch p := req.GetParams().(type) {
	case *mcp.ListToolsParams:
		if p != nil {
			cursor = p.Cursor
		}
		tools, next, err := pageOf(v.tools, cursor, func(d *declaration) string { return d.sdk.Name })
		return listedTools{&mcp.ListToolsResult{Cacheable: cacheable, NextCursor: next}, o.permitted(ctx, tools)}, err
	case *mcp.ListPromptsParams:
		if p != nil {
			cursor = p.Cursor
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(o.prompts)) {
			p := o.prompts[name]
			if name == p.declared && v.profile.showsServer(p.server.Info().Name) && o.rules.Check(ctx, offerOf(p.server, p.is.Name, name)) == nil {
				names = append(names, name)
			}
		}
		names, next, err := pageOf(names, cursor, func(name string) string { return name })
		page := &mcp.ListPromptsResult{Cacheable: cacheable, NextCursor: next, Prompts: []*mcp.Prompt{}}
		for _, name := range names {
			if is := convert[mcp.Prompt](o.prompts[name].is); is != nil {
				is.Name = name
				page.Prompts = append(page.Prompts, is)
			}
		}
		return page, err
	case *mcp.ListResourcesParams:
		if p != nil {
			cursor = p.Cursor
		}
		all, next, err := pageOf(o.shown(ctx, v).list(false), cursor, (*resource).uri)
		page := &mcp.ListResourcesResult{Cacheable: cacheable, NextCursor: next, Resources: []*mcp.Resource{}}
		for _, r := range all {
			page.Resources = append(page.Resources, r.is)
		}
		return page, err
	case *mcp.ListResourceTemplatesParams:
		if p != nil {
			cursor = p.Cursor
		}
		all, next, err := pageOf(o.shown(ctx, v).list(true), cursor, (*resource).uri)
		page := &mcp.ListResourceTemplatesResult{Cacheable: cacheable, NextCursor: next, ResourceTemplates: []*mcp.ResourceTemplate{}}
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
	first, found := slices.BinarySearchFunc(all, string(after), func(one T, after string) int { return strings.Compare(key(one), after) })
	if found {
		first++
	}
	if all = all[first:]; len(all) > pageSize {
		all = all[:pageSize]
		next = base64.RawURLEncoding.EncodeToString([]byte(key(all[pageSize-1])))
	}
	return all, next, nil
}
