// Package sources makes the sources that the settings declare: built-in tools, plugins, the
// discovery command, composites, MCP servers and APIs, with the options, logins and connections
// that each needs. [New] starts none of them. The package knows neither the registry made of them
// nor the calls of their tools. What a server may ask for is passed in [Options].
package sources

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Set has the sources of one run in the order of registration.
type Set struct {
	*Servers
	Builtin    registry.Source   // also in Local
	Local      []registry.Source // started for every request; the host's comes first
	Plugins    *Plugins
	Composites *discover.Composites // nil if there are none

	newComposites func(context.Context) *discover.Composites // reads them again
}

// All returns all sources in the order of registration.
func (s *Set) All() []registry.Source {
	return slices.Concat(s.Local, s.InUse())
}

// WithoutPlugins returns the local sources without plugins if name is that of a built-in tool. No
// plugin can take that name, so the call does not have to wait for plugins. It returns nil for
// other names, and if there are no plugins.
func (s *Set) WithoutPlugins(name string) []registry.Source {
	if len(s.Plugins.Found) == 0 || builtin.Named(name) == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Local), func(source registry.Source) bool {
		return strings.HasPrefix(source.Name(), registry.PluginPrefix)
	})
}

// Hidden finds the tool that a name would refer to if no setting excluded it,
// by name, alias, server__tool or name@version; nil if there is none.
func (s *Set) Hidden(reg *registry.Registry, name string) *registry.Hidden {
	plain, version := name, ""
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		plain, version = name[:i], name[i+1:]
	}
	canonical := builtin.Canonical()(plain)
	var other *registry.Hidden // of another version
	for _, h := range reg.Hidden() {
		server, isServer := registry.ServerOf(h.Source)
		qualified := server + "__" + h.Name
		meant := h.Name == name || h.Name == plain ||
			canonical != "" && h.Source == registry.SourceBuiltin && h.Name == canonical ||
			isServer && (qualified == plain || registry.ValidName(qualified) == plain)
		switch {
		case meant && (plain == name || h.Version == version):
			return &h
		case meant && other == nil:
			other = &h
		}
	}
	if other != nil && reg.Versions(plain) == nil {
		return other
	}
	if off := s.FindDisabled(plain); off != nil {
		why, setting := off.Off()
		return &registry.Hidden{Name: plain, Source: off.Source(), Reason: "its server is " + why, Setting: setting}
	}
	return nil
}

// narrow removes all sources but the built-in tools and the host's.
func (s *Set) narrow() {
	s.Local = slices.DeleteFunc(s.Local, func(source registry.Source) bool {
		return source.Name() != registry.SourceBuiltin && source.Name() != registry.SourceHost
	})
	s.on, s.Off, s.apis, s.recorded = nil, nil, nil, nil
}

// withReplayed adds the sources of a recording to the local ones. A recorded host takes the place
// of today's, which is first.
func withReplayed(local, replayed []registry.Source) []registry.Source {
	for _, source := range replayed {
		if source.Name() != registry.SourceHost {
			local = append(local, source)
			continue
		}
		local = slices.DeleteFunc(local, func(s registry.Source) bool { return s.Name() == registry.SourceHost })
		local = slices.Insert(local, 0, source)
	}
	return local
}

// New creates the sources, without starting any, and the connections to their servers. earlier are
// the connections of the session to replace, or nil.
func New(ctx context.Context, o Options, earlier *Connections) (*Set, *Connections) {
	set, c := o.Programs.Settings, newConnections(&o, earlier)
	out := &Set{Servers: &Servers{listings: o.Listings}, Plugins: newPlugins(ctx, &o),
		Composites: o.composites(ctx), newComposites: o.composites}
	own := o.builtin()
	own.Workspace.Protected = append(own.Workspace.Protected, protectedFiles(out.Plugins.Found, set.Workspace)...)
	out.Builtin = builtin.Source(own)
	if o.Host != nil {
		out.Local = append(out.Local, o.Host)
	}
	out.Local = append(out.Local, out.Builtin)
	if o.Replayed != nil {
		out.Local = withReplayed(out.Local, o.Replayed)
		out.recorded = c.replayed(ctx, o.Replayed)
	} else {
		for _, p := range out.Plugins.Found {
			if p.Source != nil {
				out.Local = append(out.Local, p.Source)
			}
		}
	}
	if out.Composites != nil {
		out.Local = append(out.Local, out.Composites)
	}
	if o.Replayed == nil {
		out.declared(ctx, &o, c)
	}
	if o.OnlyLocal {
		out.narrow()
	}
	if set.View != nil { // nothing but servers is registered
		out.Local, out.Plugins.Found = nil, nil
	}
	return out, c
}

// declared adds the discovery command, the servers and the APIs of the settings.
func (s *Set) declared(ctx context.Context, o *Options, c *Connections) {
	set := o.Programs.Settings
	if set.DiscoveryCommand.IsSet() || set.DiscoveryCommand.Err != nil {
		s.Local = append(s.Local, discover.NewCommand(o.command()))
	}
	for _, server := range set.Servers {
		off := DisabledServer{Server: server, options: c.Options(ctx, server)}
		if !server.IsOff() {
			switch off.skipped = skipReason(o.Programs, o.Inside, &server); {
			case off.skipped == "" && c.opts.Logins.PerClient && server.LoginPerClient():
				off.skipped = perClient
			case off.skipped == "":
				s.on = append(s.on, c.links.server(off.options, ""))
				continue
			default:
				reportSkipped(o, &off)
			}
		}
		s.Off = append(s.Off, off)
	}
	for _, api := range set.APIs {
		if api.Disabled {
			s.Off = append(s.Off, DisabledServer{Server: api.Server, isAPI: true})
			continue
		}
		s.apis = append(s.apis, c.api(api))
	}
}

// reportSkipped reports a skipped server: as a warning if it was given for this run.
func reportSkipped(opts *Options, o *DisabledServer) {
	message := fmt.Sprintf("server %q (%s) is %s", o.Name, o.Origin, o.skipped)
	if o.Origin.Scope == settings.ScopeFlag || o.Origin.Scope == settings.ScopeEnv {
		opts.Programs.Warn(registry.Warning("server_skipped", registry.MCPPrefix+o.Name, message, ""))
		return
	}
	opts.Notice(registry.Diagnostic{Severity: registry.SeverityInfo,
		Code: "server_skipped", Source: registry.MCPPrefix + o.Name, Message: message})
}

// perClient is why a server with oauth.per: client is not part of a registry.
const perClient = "reached only with the login of a client (oauth.per: client)"

// ForClients returns a function that makes the sources of one client: the sources of all, and at
// their places in the settings the servers that use the client's own logins. It returns nil if
// there are no such servers.
func (s *Set) ForClients(c *Connections) func(ctx context.Context, client string) *Set {
	isOwn := func(off DisabledServer) bool { return off.skipped == perClient }
	if !slices.ContainsFunc(s.Off, isOwn) {
		return nil
	}
	return func(ctx context.Context, client string) *Set {
		out, servers := *s, *s.Servers
		out.Servers = &servers
		servers.on, servers.Off = nil, slices.DeleteFunc(slices.Clone(s.Off), isOwn)
		for _, entry := range c.opts.Programs.Settings.Servers {
			named := func(name string) bool { return name == entry.Name }
			if i := slices.IndexFunc(s.on,
				func(server *mcpclient.Source) bool { return named(server.Settings().Name) }); i >= 0 {
				servers.on = append(servers.on, s.on[i])
			} else if slices.ContainsFunc(s.Off,
				func(off DisabledServer) bool { return isOwn(off) && named(off.Name) }) {
				servers.on = append(servers.on, c.serverFor(ctx, entry, client))
			}
		}
		if i := slices.Index(s.Local, registry.Source(s.Composites)); i >= 0 {
			// Whether all steps of a composite are known depends on the client's tools.
			out.Composites, out.Local = s.newComposites(ctx), slices.Clone(s.Local)
			out.Local[i] = out.Composites
		}
		return &out
	}
}
