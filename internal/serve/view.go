package serve

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Profile is a part of the registry that some clients are offered instead of all of it.
type Profile struct {
	Name string
	// Groups are globs of the groups whose members get the profile. If it is empty, every
	// client may use it.
	Groups []string
	// Select is that of [Options].
	Select func(context.Context, *engine.Session) (*registry.Registry, []engine.Found, error)
	// Tools reports whether a tool is part of the profile. nil: all are.
	Tools func(*registry.Tool) bool
	// Servers is that of [Options].
	Servers func(name string) bool
}

// shows reports whether a tool is part of the profile.
func (p *Profile) shows(t *registry.Tool) bool { return p.Tools == nil || p.Tools(t) }

// showsServer reports whether prompts and resources of a server are part of the profile.
func (p *Profile) showsServer(name string) bool { return p.Servers == nil || p.Servers(name) }

// isFor reports whether one of a caller's groups gets the profile.
func (p *Profile) isFor(groups []string) bool {
	for _, glob := range p.Groups {
		for _, group := range groups {
			if text.MatchName(glob, group) {
				return true
			}
		}
	}
	return false
}

// context returns a context in which tools outside the profile cannot be found, and its servers alone
// are named.
func (p *Profile) context(ctx context.Context) context.Context {
	return engine.WithScope(ctx, p.Tools, p.Servers)
}

// view is what the clients of a profile are offered.
type view struct {
	*offer
	profile Profile
	tools   []*declaration   // by the name as declared
	faulty  []*registry.Tool // those that cannot be declared
	// apps is the same with the tools that only pages of tools may call. It is nil if there are none.
	apps *view
}

// withApps returns the view of clients that show pages of tools.
func (v *view) withApps() *view {
	if v.apps != nil {
		return v.apps
	}
	return v
}

// declaration is a tool and what clients see of it.
type declaration struct {
	engine.Found
	raw json.RawMessage
	sdk *mcp.Tool // for the SDK, which needs less
}

// search returns where in tools the one of a name is, or would be.
func (v *view) search(name string) (at int, found bool) {
	return slices.BinarySearchFunc(v.tools, name, func(d *declaration, name string) int { return strings.Compare(d.sdk.Name, name) })
}

// find returns the tool that is offered under a name; nil if none is.
func (v *view) find(name string) *declaration {
	if at, ok := v.search(name); ok {
		return v.tools[at]
	}
	return nil
}

func (v *view) names() []string {
	out := make([]string, len(v.tools))
	for i, t := range v.tools {
		out[i] = t.sdk.Name
	}
	return out
}

// views makes the views of profiles when they are first used. It is safe for concurrent use.
type views struct {
	profiles []Profile
	who      caller.Caller // for whom; zero: for all
	warn     func(registry.Diagnostic)
	life     context.Context

	mu       sync.Mutex
	made     map[string]*view
	declared map[*registry.Tool]*declaration // that views share
	digests  map[[2]string]listDigest        // of lists, by profile and kind
}

// addTo adds what the views that were made have, by names as declared, except what is there.
func (v *views) addTo(to map[string]*declaration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, d := range v.declared {
		if _, ok := to[d.sdk.Name]; !ok {
			to[d.sdk.Name] = d
		}
	}
}

// view returns what the clients of a profile are offered, and whether it was made just now. If
// there is no such profile, they are offered nothing.
func (o *offer) view(profile string) (_ *view, made bool) {
	if profile == "" {
		return o.all, false
	}
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if v := o.views.made[profile]; v != nil {
		return v, false
	}
	v := &view{offer: o, profile: Profile{
		Name:    profile,
		Tools:   func(*registry.Tool) bool { return false },
		Servers: func(string) bool { return false },
	}}
	for _, p := range o.views.profiles {
		if p.Name != profile {
			continue
		}
		who := o.views.who
		who.Profile = profile
		ctx := p.context(caller.With(o.views.life, &who))
		reg, tools, err := p.Select(ctx, o.session)
		if err == nil {
			v, err = o.declare(p, reg, append(tools, o.loginTools(&p)...))
		}
		if err != nil {
			o.views.warn(registry.Diagnostic{
				Severity: registry.SeverityWarning, Code: "profile_unread",
				Message: "nothing is offered to clients of profile " + text.Quote(profile) + ": " + err.Error(),
			})
		}
	}
	o.views.made[profile] = v
	return v, true
}

// appsBeside returns the tools that only pages of the servers may call whose other tools are
// offered.
func appsBeside(p Profile, reg *registry.Registry, tools []engine.Found) []engine.Found {
	apps := slices.DeleteFunc(reg.Apps(), func(app *registry.Tool) bool {
		return !p.shows(app) || !slices.ContainsFunc(tools, func(f engine.Found) bool { return f.Tool.Source == app.Source })
	})
	return engine.FoundIn(reg, apps)
}

// declare declares the tools of a profile in the format mcp, with their names in the whole
// registry.
func (o *offer) declare(p Profile, reg *registry.Registry, tools []engine.Found) (*view, error) {
	format, err := provider.Lookup("mcp")
	if err != nil {
		return nil, err
	}
	out := &view{offer: o, profile: p, tools: make([]*declaration, 0, len(tools))}
	models := len(tools)
	tools = append(tools, appsBeside(p, reg, tools)...)
	byName := map[string]engine.Found{}
	var defs []registry.Definition
	for _, f := range tools {
		if d, ok := o.views.declared[f.Tool]; ok {
			out.tools = append(out.tools, d)
			continue
		}
		def := engine.Definition(reg, f.Tool)
		defs, byName[def.Name] = append(defs, def), f
	}
	encoded, diags := format.Encode(defs, provider.Options{Registered: engine.Names(reg)})
	for _, d := range diags {
		if d.Severity != registry.SeverityInfo {
			o.views.warn(d)
		}
	}
	for _, d := range encoded.Declarations {
		f := byName[d.Tool]
		one := &declaration{f, d.Data, &mcp.Tool{Name: d.Name, InputSchema: headerSchema(d.Data)}}
		out.tools, o.views.declared[f.Tool] = append(out.tools, one), one
		delete(byName, d.Tool)
	}
	for _, f := range byName {
		out.faulty = append(out.faulty, f.Tool)
	}
	slices.SortFunc(out.tools, func(a, b *declaration) int { return strings.Compare(a.sdk.Name, b.sdk.Name) })
	if forApps := tools[models:]; len(forApps) > 0 {
		out.apps = &view{offer: o, profile: p, tools: slices.Clone(out.tools), faulty: out.faulty}
		out.tools = slices.DeleteFunc(out.tools, func(d *declaration) bool {
			return slices.ContainsFunc(forApps, func(f engine.Found) bool { return f.Tool == d.Tool })
		})
	}
	return out, nil
}

// headerSchema returns the part of a tool's input schema that the SDK needs: the params
// that clients repeat in HTTP headers (revision 2026-07-28, x-mcp-header), which the SDK
// compares with the headers of each call. The SDK would not accept every schema, and it
// reads the schema at each call.
func headerSchema(declaration json.RawMessage) any {
	input := jsonx.Get(declaration, "inputSchema")
	if !wire.NamesParamHeaders(input) || wire.CheckParamHeaders(input) != nil {
		return &headerParams{Type: "object"}
	}
	schema := headerParamsOf(input)
	schema.Type = "object"
	return schema
}

// headerParams is a schema that has only the params repeated in headers.
type headerParams struct {
	Type       string                   `json:"type"`
	Header     string                   `json:"x-mcp-header,omitempty"`
	Properties map[string]*headerParams `json:"properties,omitempty"`
}

// headerParamsOf reads a schema as clients do, for whom the names of members are exact.
func headerParamsOf(schema json.RawMessage) *headerParams {
	p := &headerParams{Properties: map[string]*headerParams{}}
	p.Type, _ = jsonx.Text(jsonx.Get(schema, "type"))
	p.Header, _ = jsonx.Text(jsonx.Get(schema, "x-mcp-header"))
	for name, property := range jsonx.Members(jsonx.Get(schema, "properties")) {
		if one := headerParamsOf(property); one.Header != "" || len(one.Properties) > 0 {
			p.Properties[name] = one
		}
	}
	return p
}
