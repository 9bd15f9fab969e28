package sources

import (
	"cmp"
	"context"
	"encoding/json"
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
		pairs, err := o.Programs.Expander.Pairs(ctx, "headers", given.Headers)
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
