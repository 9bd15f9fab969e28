package offer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/owner"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/uri"
)

type offering struct {
	server    *mcpclient.Source
	name      string
	known     bool // it has listed what it offers
	exact     map[string]*Resource
	templates []*Resource
	before    []*Resource // what earlier runs know of it, none of which can be read now
}

// listed is what one server offers besides tools.
type listed struct {
	prompts   []mcpclient.Prompt
	resources []mcpclient.Resource
	templates []mcpclient.ResourceTemplate
}

// Prompt is a prompt of a server.
type Prompt struct {
	Server *mcpclient.Source
	// Declared is the name that clients see, Name the server's own.
	Declared string
	Name     string
	is       mcpclient.Prompt
}

// Offer describes the prompt for the policy.
func (p *Prompt) Offer() engine.Offer {
	return engine.Offer{Server: p.Server.Info().Name, Prompt: p.Name, Name: p.Declared}
}

// Resource is a resource of a server, or a template.
type Resource struct {
	Server   *mcpclient.Source
	URI      string // or the template
	MIMEType string // that the contents have unless they say otherwise
	is       *mcp.Resource
	like     *mcp.ResourceTemplate
	matches  matcher // nil unless it is a template
}

// IsTemplate reports whether it is a resource template.
func (r *Resource) IsTemplate() bool { return r.matches != nil }

// Offer describes reading a URI, for the policy.
func (r *Resource) Offer(uri string) engine.Offer {
	return engine.Offer{Server: r.Server.Info().Name, URI: uri}
}

// readOfferings lists what connected servers offer besides tools. Servers in earlier are queried
// only if they are also in again, and keep what they had if they fail. A failing server does not
// affect the others.
func (o *Offer) readOfferings(ctx context.Context, offers func(server string) bool,
	earlier map[*mcpclient.Source]listed, again []registry.Source) {
	var given []owner.Offer
	for _, server := range o.Servers.On() {
		info := server.Info()
		l, known := earlier[server]
		ask := info.State == mcpclient.StateConnected && (!known || slices.Contains(again, registry.Source(server)))
		if offers != nil && !offers(info.Name) {
			continue
		}
		if ask {
			o.ask(ctx, server, &l)
		}
		one := &offering{server: server, name: info.Name, known: known || ask, exact: map[string]*Resource{}}
		o.offerings = append(o.offerings, one)
		if one.known {
			o.listed[server] = l
			names := one.add(l, o.noteFailure)
			for _, p := range l.prompts {
				names = append(names, owner.Offer{Server: one.name, Prompt: p.Name})
			}
			if !server.Settings().LoginPerClient() { // its offerings differ for each client, who must not know of those of others
				given = append(given, names...)
			}
		}
	}
	owners := o.Session.OfferOwners
	owners.Keep(ctx, given)
	for _, one := range o.offerings {
		one.remember(owners.Of(one.name))
		for _, p := range o.listed[one.server].prompts {
			o.addPrompt(one.server, p)
		}
	}
	o.noteTaken()
}

// Has reports whether the offer knows what a server offers besides tools.
func (o *Offer) Has(server *mcpclient.Source) bool {
	return slices.ContainsFunc(o.offerings, func(one *offering) bool { return one.server == server })
}

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
			s.exact[r.URI] = &Resource{Server: s.server, URI: is.URI, MIMEType: is.MIMEType, is: is}
			given = append(given, owner.Offer{Server: s.name, URI: r.URI})
		}
	}
	for _, t := range l.templates {
		like := convert[mcp.ResourceTemplate](t)
		same := func(other *Resource) bool { return other.URI == t.URITemplate }
		if like == nil || slices.ContainsFunc(s.templates, same) {
			continue
		}
		matches, err := matcherOf(like.URITemplate)
		if err != nil {
			leftOut(like.URITemplate, err)
			continue
		}
		s.templates = append(s.templates, &Resource{
			Server: s.server, URI: like.URITemplate, MIMEType: like.MIMEType, like: like, matches: matches,
		})
		given = append(given, owner.Offer{Server: s.name, Template: like.URITemplate})
	}
	return given
}

// remember adds what earlier runs know of a server and the server does not list now.
func (s *offering) remember(before []owner.Offer) {
	listsNow := map[owner.Offer]bool{}
	for u := range s.exact {
		listsNow[owner.Offer{Server: s.name, URI: uri.Canonical(u)}] = true
	}
	for _, t := range s.templates {
		listsNow[owner.Offer{Server: s.name, Template: t.URI}] = true
	}
	for _, name := range before {
		switch {
		case listsNow[name]:
		case name.URI != "":
			s.before = append(s.before, &Resource{Server: s.server, URI: name.URI})
		case name.Template != "":
			if matches, err := matcherOf(name.Template); err == nil {
				s.before = append(s.before, &Resource{Server: s.server, URI: name.Template, matches: matches})
			}
		}
	}
}

// matcher reports whether a URI matches a template. Servers match more loosely than RFC 6570
// expands templates: a simple variable takes everything but slashes, and {path*} takes slashes too
// (FastMCP).
type matcher func(uri string, loosely bool) bool

// matcherOf returns the matcher of a template. It compiles the expressions when first needed.
func matcherOf(template string) (matcher, error) {
	loose, err := looseExpression(template)
	if err != nil {
		return nil, err
	}
	exactly := sync.OnceValue(func() *regexp.Regexp {
		if t, err := uritemplate.New(template); err == nil {
			return t.Regexp()
		}
		return nil // its variables have names that only the server understands
	})
	loosely := sync.OnceValue(func() *regexp.Regexp {
		e, _ := regexp.Compile(loose) // nil if it is too large
		return e
	})
	return func(uri string, loose bool) bool {
		expression := exactly
		if loose {
			expression = loosely
		}
		e := expression()
		return e != nil && e.MatchString(uri)
	}, nil
}

// looseExpression returns a regular expression for URIs that a server may match to a template. It
// does not match templates.
func looseExpression(template string) (string, error) {
	var b strings.Builder
	b.WriteString(`\A`)
	for rest := template; ; {
		literal, after, found := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(literal))
		if !found {
			return b.String() + `\z`, nil
		}
		variable, next, closed := strings.Cut(after, "}")
		switch {
		case !closed || strings.Trim(variable, "*") == "" || strings.Contains(variable, "{"):
			return "", fmt.Errorf("%q is not a URI template", template)
		case strings.ContainsAny(variable[:1], "+#./;?&"): // RFC 6570, section 2.2
			b.WriteString(`[^{}]*`)
		case strings.HasSuffix(variable, "*"):
			b.WriteString(`[^{}]+`)
		default:
			b.WriteString(`[^/{}]+`)
		}
		rest = next
	}
}

// noteTaken warns about resources that two servers list.
func (o *Offer) noteTaken() {
	seen := map[string]string{} // the first server that lists a URI
	for _, one := range o.offerings {
		for _, r := range one.all() {
			u := r.URI
			has, _ := o.Session.OfferOwners.Owner(r.ownedAs(one.name))
			first := seen[u]
			if first == "" {
				seen[u] = one.name
			}
			if has == one.name || has == "" && first == "" {
				continue
			}
			o.warn(registry.Warning("resource_taken", one.server.Name(),
				fmt.Sprintf("resource %q is offered from %s", u, registry.MCPPrefix+cmp.Or(has, first)), ""))
		}
	}
}

// matches reports whether the server lists a URI, or a template that matches it.
func (s *offering) matches(u string) bool {
	return s.exact[u] != nil || slices.ContainsFunc(s.templates, func(r *Resource) bool { return r.matches(u, true) })
}

// all returns the resources, sorted by URI, and then the templates.
func (s *offering) all() []*Resource {
	out := make([]*Resource, 0, len(s.exact)+len(s.templates))
	for _, u := range slices.Sorted(maps.Keys(s.exact)) {
		out = append(out, s.exact[u])
	}
	return append(out, s.templates...)
}

// ownedAs returns the name under which package owner records the resource or template.
func (r *Resource) ownedAs(server string) owner.Offer {
	if r.IsTemplate() {
		return owner.Offer{Server: server, Template: r.URI}
	}
	return owner.Offer{Server: server, URI: uri.Canonical(r.URI)}
}

// ask queries a server for its prompts and resources. A list that it fails to return stays as it
// was.
func (o *Offer) ask(ctx context.Context, server *mcpclient.Source, l *listed) {
	prompts, _, err := server.Prompts(ctx)
	if err == nil {
		l.prompts = prompts
	}
	o.noteFailure(server, err)
	resources, templates, _, err := server.Resources(ctx)
	if err == nil {
		l.resources, l.templates = resources, templates
	}
	o.noteFailure(server, err)
}

// noteFailure warns about a server's prompts or resources that cannot be offered.
func (o *Offer) noteFailure(server *mcpclient.Source, err error) {
	if err != nil {
		o.warn(registry.Warning("offers_unread", server.Name(), err.Error(), ""))
	}
}

// addPrompt adds a prompt under server__name, and also under its own name if that is free and does
// not belong to another server.
func (o *Offer) addPrompt(server *mcpclient.Source, is mcpclient.Prompt) {
	p := &Prompt{Server: server, is: is, Name: is.Name, Declared: is.Name}
	qualified := is.Server + "__" + is.Name
	has, _ := o.Session.OfferOwners.Owner(owner.Offer{Prompt: is.Name})
	if _, taken := o.prompts[is.Name]; taken || has != "" && has != is.Server {
		p.Declared = qualified
	} else {
		o.prompts[is.Name] = p
	}
	if _, taken := o.prompts[qualified]; !taken {
		o.prompts[qualified] = p
	}
}

// convert converts what a server listed to the SDK's type; nil if that is impossible.
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
