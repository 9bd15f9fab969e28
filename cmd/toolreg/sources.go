package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// sources are the sources of one run in the order of registration (spec
// section 5).
type sources struct {
	local   []registry.Source   // started for every request
	servers []*mcpclient.Source // started for those that need them
	off     []offServer         // disabled or not allowed, never started

	plugins    []foundPlugin        // all that were found
	composites *discover.Composites // nil: none
	env        []string             // of the commands that tools run
	memory     *memory              // what earlier runs left
}

// offServer is a server that the settings keep out.
type offServer struct {
	settings.Server
	options mcpclient.Options
}

func (o offServer) reason() string {
	if o.Disabled {
		return "disabled at " + o.Origin.String()
	}
	return "not allowed: " + o.Excluded.String()
}

// setting is the place that keeps it out.
func (o offServer) setting() string {
	if o.Disabled {
		return o.Origin.String()
	}
	return o.Excluded.String()
}

// info is what servers shows of it.
func (o offServer) info() mcpclient.Info {
	info := mcpclient.New(o.options).Info()
	info.State, info.Error = mcpclient.StateDisabled, o.reason()
	return info
}

func newSources(ctx context.Context, a *app, s *settings.Settings, composites *discover.Composites) *sources {
	x := settings.NewExpander(s.ProjectRoot, a.environ)
	env, envErr := a.toolEnviron(ctx, s, x)
	if envErr != nil && !s.DiscoveryCommand.IsSet() {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "env_unset", Message: envErr.Error(),
			Hint: "commands run without the variables of the setting env"})
	}
	m := newMemory(a, s, x)
	out := &sources{env: env, memory: m, plugins: a.pluginSources(ctx, s, x, m, env, envErr), composites: composites}
	own := builtinOptions(a, s, env)
	own.Protected = append(own.Protected, pluginPaths(out.plugins, s.Workspace)...)
	out.local = []registry.Source{builtin.Source(own)}
	for _, p := range out.plugins {
		if p.source != nil {
			out.local = append(out.local, p.source)
		}
	}
	if composites != nil {
		out.local = append(out.local, composites)
	}
	if s.DiscoveryCommand.IsSet() {
		out.local = append(out.local, discover.NewCommand(commandOptions(s, x, m, env, envErr)))
	}
	for _, server := range s.Servers {
		if server.Disabled || server.Excluded != nil {
			out.off = append(out.off, offServer{server, a.serverOptions(ctx, s, server, x, m)})
			continue
		}
		out.servers = append(out.servers, mcpclient.New(a.serverOptions(ctx, s, server, x, m)))
	}
	return out
}

func (a *app) serverOptions(ctx context.Context, s *settings.Settings, server settings.Server, x *settings.Expander, m *memory) mcpclient.Options {
	kept := m.ofServer(server, &a.counts)
	logins := a.logins()
	o := mcpclient.Options{
		Server:      server,
		Expand:      x.Server,
		ProjectRoot: s.ProjectRoot, Workspace: s.Workspace, Environ: a.childEnviron(), Version: version,
		Logger: a.log, OnState: a.serverState, Counts: a.counts, Listings: kept, Protocols: kept,
		Auth: func(s settings.Server) transport.Authorizer { return a.oauthClient(s, logins) },
		Limits: mcpclient.Limits{
			Frame: s.Limits.Frame, Result: s.Limits.Result, Tools: s.Limits.Tools, Pages: s.Limits.Pages, Schema: s.Limits.Schema,
		},
	}
	a.talk(ctx, s, server, &o)
	if a.globals.ConnectSet {
		o.ConnectTimeout = a.globals.ConnectTimeout
	}
	return o
}

// childEnviron is our environment with the depth of toolreg in toolreg, by
// which a tool's run is told from a person's.
func (a *app) childEnviron() []string {
	return append(slices.Clone(a.environ), depthVariable+"="+nextDepth(a.environ))
}

func (s *sources) all() []registry.Source {
	out := slices.Clone(s.local)
	for _, server := range s.servers {
		out = append(out, server)
	}
	return out
}

// age returns how old what the cache holds of a source is; ok is false for one
// that was asked.
func (s *sources) age(name string) (age time.Duration, ok bool) {
	_, ok = s.memory.listings.Served(name)
	return s.memory.listings.Age(name), ok
}

// withoutPlugins returns the local sources without the plugins for the name of
// a built-in tool, which no plugin can take: a call to it waits for none of
// them. nil for other names, and where there are no plugins.
func (s *sources) withoutPlugins(name string) []registry.Source {
	if len(s.plugins) == 0 || !slices.Contains(builtin.Names(), name) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.local), func(source registry.Source) bool {
		return strings.HasPrefix(source.Name(), registry.PluginPrefix)
	})
}

// serverOf returns the server that a name of the form server__tool speaks of,
// nil if none; the longest server name wins.
func (s *sources) serverOf(name string) *mcpclient.Source {
	var found *mcpclient.Source
	longest := 0
	for _, server := range s.servers {
		raw := server.Info().Name
		for _, prefix := range []string{raw + "__", registry.ValidName(raw + "__")} {
			if strings.HasPrefix(name, prefix) && len(raw) > longest {
				found, longest = server, len(raw)
			}
		}
	}
	return found
}

// filters turns the settings that keep tools out into filters, in the order of
// spec section 5.
func filters(s *settings.Settings) []registry.Filter {
	out := []registry.Filter{discover.DisabledFilter(entries(s.PluginsOff))}
	if s.CoreTools.Set {
		out = append(out, registry.CoreToolsFilter(entries(s.CoreTools), listOrigin(s.CoreTools)))
	}
	for _, server := range s.Servers {
		if server.IncludeTools.Set || server.ExcludeTools.Set {
			out = append(out, mcpclient.Filter(server))
		}
	}
	return append(out,
		registry.PermissionsFilter(deniedPermissions(s)),
		discover.ConditionFilter(),
		registry.OptionalFilter(entries(s.AllowOptional)),
		registry.ExcludeFilter(entries(s.ExcludeTools)))
}

func entries(l settings.List) []registry.Entry {
	out := make([]registry.Entry, len(l.Entries))
	for i, e := range l.Entries {
		out[i] = registry.Entry{Value: e.Value, Setting: e.Origin.String()}
	}
	return out
}

func listOrigin(l settings.List) string {
	if len(l.Entries) == 0 {
		return ""
	}
	return l.Entries[0].Origin.String()
}

// deniedPermissions maps each permission that is switched off to its setting.
func deniedPermissions(s *settings.Settings) map[string]string {
	out := map[string]string{}
	for name, allowed := range s.Permissions {
		if !allowed {
			out[name] = s.DeniedBy[name].String()
		}
	}
	return out
}
