package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/owner"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/uri"
)

// offers are the prompts and resources of servers.
type offers struct {
	prompts map[string]*prompt // by the server's name, if it is free, and by server__name
	servers []*offering        // in the order of the settings
	listed  map[*mcpclient.Source]listed
	owners  *owner.Offers
}

// offering is what one server offers to read.
type offering struct {
	server    *mcpclient.Source
	name      string
	known     bool // it has listed what it offers
	exact     map[string]*resource
	templates []*resource
	before    []*resource // what earlier runs know of it; nothing of it can be read
}

// listed is what one server offers besides tools.
type listed struct {
	prompts   []mcpclient.Prompt
	resources []mcpclient.Resource
	templates []mcpclient.ResourceTemplate
}

// prompt is a prompt of a server.
type prompt struct {
	server   *mcpclient.Source
	declared string
	is       mcpclient.Prompt
}

// resource is a resource of a server, or a template.
type resource struct {
	server  *mcpclient.Source
	is      *mcp.Resource
	like    *mcp.ResourceTemplate
	matches func(uri string) bool // of a template
}

// uri returns the URI of a resource, or a template.
func (r *resource) uri() string {
	if r.like != nil {
		return r.like.URITemplate
	}
	return r.is.URI
}

// mimeType returns the type that the contents have unless they say otherwise.
func (r *resource) mimeType() string {
	if r.like != nil {
		return r.like.MIMEType
	}
	return r.is.MIMEType
}

// loadOffers lists what the connected servers offer besides tools. Servers in earlier are
// asked only if they are also in again, and keep what they had if they fail. A server that
// fails does not affect the others.
func (o *Options) loadOffers(ctx context.Context, from *engine.Servers, owners *owner.Offers,
	earlier map[*mcpclient.Source]listed, again []*mcpclient.Source) offers {
	all := offers{prompts: map[string]*prompt{}, listed: map[*mcpclient.Source]listed{}, owners: owners}
	servers, _, err := from.Named()
	if err != nil {
		return all
	}
	var given []owner.Offer
	for _, server := range servers {
		info := server.Info()
		l, known := earlier[server]
		ask := info.State == mcpclient.StateConnected && (!known || slices.Contains(again, server))
		if o.Servers != nil && !o.Servers(info.Name) {
			continue
		}
		if ask {
			l.ask(ctx, server, o.noteFailure)
		}
		one := &offering{server: server, name: info.Name, known: known || ask, exact: map[string]*resource{}}
		all.servers = append(all.servers, one)
		if one.known {
			all.listed[server] = l
			names := one.add(l, o.noteFailure)
			for _, p := range l.prompts {
				names = append(names, owner.Offer{Server: one.name, Prompt: p.Name})
			}
			if !server.Settings().LoginPerClient() { // each client sees others, and is not to know of them
				given = append(given, names...)
			}
		}
	}
	owners.Keep(ctx, given)
	for _, one := range all.servers {
		one.remember(owners.Of(one.name))
		l := all.listed[one.server]
		for _, p := range l.prompts {
			all.addPrompt(one.server, p)
		}
	}
	all.noteTaken(o.Warn)
	return all
}

// add adds what a server has listed, and returns the names of it.
func (s *offering) add(l listed, note func(*mcpclient.Source, error)) (given []owner.Offer) {
	leftOut := func(uri string, err error) {
		note(s.server, fmt.Errorf("resource %q is left out: %w", uri, err))
	}
	for _, r := range l.resources {
		is := convert[mcp.Resource](r)
		if _, err := url.Parse(r.URI); err != nil {
			leftOut(r.URI, err)
			continue
		}
		if _, twice := s.exact[r.URI]; is != nil && !twice {
			s.exact[r.URI] = &resource{server: s.server, is: is}
			given = append(given, owner.Offer{Server: s.name, URI: r.URI})
		}
	}
	for _, t := range l.templates {
		like := convert[mcp.ResourceTemplate](t)
		if like == nil || slices.ContainsFunc(s.templates, func(other *resource) bool { return other.like.URITemplate == like.URITemplate }) {
			continue
		}
		matches, err := matcherOf(like.URITemplate)
		if err != nil {
			leftOut(like.URITemplate, err)
			continue
		}
		s.templates = append(s.templates, &resource{server: s.server, like: like, matches: matches})
		given = append(given, owner.Offer{Server: s.name, Template: like.URITemplate})
	}
	return given
}

// remember adds what earlier runs know of a server and it does not list now.
func (s *offering) remember(before []owner.Offer) {
	listsNow := map[owner.Offer]bool{}
	for u := range s.exact {
		listsNow[owner.Offer{Server: s.name, URI: uri.Canonical(u)}] = true
	}
	for _, t := range s.templates {
		listsNow[owner.Offer{Server: s.name, Template: t.like.URITemplate}] = true
	}
	for _, name := range before {
		switch {
		case listsNow[name]:
		case name.URI != "":
			s.before = append(s.before, &resource{server: s.server, is: &mcp.Resource{URI: name.URI}})
		case name.Template != "":
			if matches, err := matcherOf(name.Template); err == nil {
				s.before = append(s.before, &resource{server: s.server, like: &mcp.ResourceTemplate{URITemplate: name.Template}, matches: matches})
			}
		}
	}
}

// matcherOf returns a function that reports whether a URI is one of a template. The expression for it
// is compiled when it is first needed.
func matcherOf(template string) (func(string) bool, error) {
	t, err := uritemplate.New(template)
	if err != nil {
		return nil, err
	}
	expression := sync.OnceValue(t.Regexp)
	return func(uri string) bool { return expression().MatchString(uri) }, nil
}

// noteTaken warns about resources that two servers list.
func (o *offers) noteTaken(warn func(registry.Diagnostic)) {
	seen := map[string]*offering{}
	for _, one := range o.servers {
		for _, r := range one.all() {
			u := r.uri()
			has, _ := o.owners.Owner(r.ownedAs(one.name))
			first := seen[u]
			if first == nil {
				seen[u] = one
			}
			if has == one.name || has == "" && first == nil {
				continue
			}
			warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "resource_taken", Source: one.server.Name(),
				Message: fmt.Sprintf("resource %q is offered from %s", u, registry.MCPPrefix+cmp.Or(has, first.nameOf()))})
		}
	}
}

func (s *offering) nameOf() string {
	if s == nil {
		return ""
	}
	return s.name
}

// matches reports whether the server lists a URI, or a template of it.
func (s *offering) matches(u string) bool {
	return s.exact[u] != nil || slices.ContainsFunc(s.templates, func(r *resource) bool { return r.matches(u) })
}

// all returns the resources by their URIs, then the templates.
func (s *offering) all() []*resource {
	out := make([]*resource, 0, len(s.exact)+len(s.templates))
	for _, u := range slices.Sorted(maps.Keys(s.exact)) {
		out = append(out, s.exact[u])
	}
	return append(out, s.templates...)
}

// ownedAs returns the name by which the owner of a resource or a template is known.
func (r *resource) ownedAs(server string) owner.Offer {
	if r.like != nil {
		return owner.Offer{Server: server, Template: r.like.URITemplate}
	}
	return owner.Offer{Server: server, URI: uri.Canonical(r.is.URI)}
}

// ask asks a server for its prompts and resources. Lists that it fails to return stay as
// they were.
func (l *listed) ask(ctx context.Context, server *mcpclient.Source, note func(*mcpclient.Source, error)) {
	prompts, _, err := server.Prompts(ctx)
	if err == nil {
		l.prompts = prompts
	}
	note(server, err)
	resources, templates, _, err := server.Resources(ctx)
	if err == nil {
		l.resources, l.templates = resources, templates
	}
	note(server, err)
}

// noteFailure warns about a server's prompts or resources that cannot be offered.
func (o *Options) noteFailure(server *mcpclient.Source, err error) {
	if err != nil {
		o.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "offers_unread", Source: server.Name(), Message: err.Error()})
	}
}

// addPrompt adds a prompt under server__name, and also under its own name if that is free and does
// not belong to another server.
func (o *offers) addPrompt(server *mcpclient.Source, is mcpclient.Prompt) {
	p := &prompt{server: server, is: is, declared: is.Name}
	qualified := is.Server + "__" + is.Name
	has, _ := o.owners.Owner(owner.Offer{Prompt: is.Name})
	if _, taken := o.prompts[is.Name]; taken || has != "" && has != is.Server {
		p.declared = qualified
	} else {
		o.prompts[is.Name] = p
	}
	if _, taken := o.prompts[qualified]; !taken {
		o.prompts[qualified] = p
	}
}

// convert converts what a server listed to the SDK's type. It returns nil if that is not
// possible.
func convert[T any](from any) *T {
	data, err := json.Marshal(from)
	if err != nil {
		return nil
	}
	var to T
	if json.Unmarshal(data, &to) != nil {
		return nil
	}
	return &to
}
