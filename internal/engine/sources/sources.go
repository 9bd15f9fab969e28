// Package sources makes the sources that the settings declare: built-in tools, plugins, the
// discovery command, composites, MCP servers and APIs, with the options, logins and connections
// that each needs. [New] starts none of them. The package knows neither the registry made of them
// nor the calls of their tools. What a server may ask for is passed in [Options].
package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/engine/listing"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
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

// Options are what [New] needs, besides the settings of Programs.
type Options struct {
	Programs *programs.Set
	Facts    programs.Facts
	Logins   *Logins
	Listings *listing.Store
	Kept     *KeptServers
	// Base returns the options of a server that do not depend on how it is reached: what it may
	// ask, what is logged, and limits.
	Base func(settings.Server) mcpclient.Options
	// Secrets returns the secrets of an entry of the setting openapi that are known.
	Secrets   func(api string) []string
	Notice    func(registry.Diagnostic)
	Earlier   []Plugin        // of the session to replace
	Tools     builtin.Options // settings of built-in tools that come from elsewhere
	Evaluator []string        // runs jq.Evaluate for expressions of plugins and projects
	Host      registry.Source // functions of the program that drives this one; may be nil
	// Replayed are the sources of a recording. If it is not nil, the only others are built-in tools
	// and composites.
	Replayed  []registry.Source
	OnlyLocal bool                  // neither plugins nor servers are used
	Inside    func() (string, bool) // see [process.InsideServer]
}

func (o *Options) builtin() builtin.Options {
	set, out := o.Programs.Settings, o.Tools
	out.Workspace.Dir, out.Shell.Env, out.Fetch = set.Workspace, o.Programs.Env, o.fetch()
	out.Shell.Timeout, out.Shell.MaxTimeout = orEndless(set.ShellTimeout), orEndless(set.ShellMaxTimeout)
	out.Shell.MaxOutput = shellOutput(set)
	out.Todo.Session, out.Todo.Agent = o.Facts.Text("sessionKey"), o.Facts.Text("agentId")
	own := o.Programs.ProtectedPaths()
	if d, err := o.Programs.Folders.State(); err == nil {
		out.Shell.StateDir, out.Todo.StateDir = d.Path, d.Path
		own = append(own, d.Path)
	}
	if dir, err := state.DefaultDir(o.Programs.Environ); err == nil && dir != out.Shell.StateDir {
		own = append(own, dir)
	}
	out.Workspace.Protected = own
	return out
}

// shellOutput is how much run_shell_command keeps of stdout and of stderr: half of the limit each,
// so that its report is not shortened again.
func shellOutput(set *settings.Settings) int64 {
	shell := &registry.Tool{
		Definition: registry.Definition{Name: "run_shell_command", Aliases: []string{"bash", "exec"}},
	}
	limit := set.Limits.Output
	if m := set.OptionsOf(shell).MaxOutput; m != nil {
		limit = *m
	}
	limit = cmp.Or(limit, set.Limits.Result)
	const labels = 1 << 10 // the other lines of the report
	return max(limit/2-labels, limit/4, 1)
}

// declaring returns the options for running plugins and the discovery command.
func (o *Options) declaring(kind string) discover.Options {
	p, limits := o.Programs, o.Programs.Settings.Limits
	return discover.Options{
		Context: o.Facts.JSON(), ProjectRoot: p.Settings.ProjectRoot, Env: append(slices.Clone(p.Env), p.Bytecode()),
		Timeout: p.Settings.DiscoveryTimeout, Hide: p.Hide, Confine: p.Confiner.Programs(kind), Evaluator: o.Evaluator,
		Limits: discover.Limits{Discovery: limits.DiscoveryOutput, Output: limits.Result, Tools: limits.Tools,
			Schema: limits.Schema},
	}
}

// command returns the options of the discovery and call commands. An unset variable in them is an
// error of this source only, when it is used.
func (o *Options) command() discover.CommandOptions {
	p := o.Programs
	out := discover.CommandOptions{Options: o.declaring(confine.Discovery),
		Discovery: p.Settings.DiscoveryCommand, Call: p.Settings.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if p.EnvErr != nil {
				return nil, p.EnvErr
			}
			return p.Expander.Command(c)
		}}
	out.Outputs = o.Listings.OfOutput(registry.SourceCommand, "")
	return out
}

func (o *Options) plugin(id string) discover.PluginOptions {
	return discover.PluginOptions{Options: o.declaring(confine.Plugins),
		Settings: func(ctx context.Context) (json.RawMessage, error) { return o.Programs.PluginSettings(ctx, id) }}
}

// fetch returns the settings of web_fetch. References in them are
// expanded when a page is fetched.
func (o *Options) fetch() builtin.FetchOptions {
	p, set := o.Programs, o.Programs.Settings
	out := builtin.FetchOptions{
		AllowHosts:   set.FetchAllow.Values(),
		Processor:    func() ([]string, error) { return p.Expander.Command(set.Fetch.Processor) },
		ProcessorDir: set.ProjectRoot,
		Timeout:      orEndless(set.Fetch.Timeout), MaxBytes: set.Fetch.MaxBytes,
		Version: o.Tools.Fetch.Version,
		Headers: o.fetchHeaders, ConfineProcessor: p.Confiner.ProgramsOf(confine.Processor,
			set.Fetch.Processor.Origin.Scope),
		ProcessorEnv: p.EnvFor(set.Fetch.Processor),
	}
	if dir, err := p.Folders.Cache(""); err == nil {
		out.CacheDir, out.Refresh = dir.Path, o.Tools.Fetch.Refresh
	}
	if set.Fetch.Proxy {
		out.Proxy = proxyOf(p.Environ)
	}
	return out
}

func (o *Options) fetchHeaders(ctx context.Context, origin string) ([]builtin.FetchHeader, error) {
	var out []builtin.FetchHeader
	for _, given := range o.Programs.Settings.Fetch.Headers {
		if given.URL != origin {
			continue
		}
		pairs, err := o.Programs.Expander.Headers(ctx, given.Headers)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			out = append(out, builtin.FetchHeader{Name: p.Name, Value: p.Value})
		}
	}
	return out, nil
}

// composites reads the setting composites. It returns nil if there are none.
func (o *Options) composites(ctx context.Context) *discover.Composites {
	named := o.Programs.Settings.RawNamed("composites")
	if len(named) == 0 {
		return nil
	}
	return discover.ParseComposites(ctx, named,
		discover.CompositeOptions{Context: o.Facts.JSON(),
			Evaluator: o.Evaluator, ProjectRoot: o.Programs.Settings.ProjectRoot})
}

// proxyOf reads the proxy variables in upper and lower case.
func proxyOf(environ []string) func(*url.URL) (*url.URL, error) {
	either := func(name string) string {
		v, ok := expand.Find(environ, name)
		if !ok {
			v, _ = expand.Find(environ, strings.ToLower(name))
		}
		return v
	}
	c := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"),
		HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	return c.ProxyFunc()
}

// Endless is the time limit used for the setting 0, which means no limit.
const Endless = 100_000 * time.Hour

func orEndless(limit time.Duration) time.Duration { return cmp.Or(limit, Endless) }
