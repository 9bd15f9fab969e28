package engine

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
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/engine/listing"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// sourceOptions derives from the settings the options of the sources that are not servers.
type sourceOptions struct {
	programs  *programs
	facts     facts
	outputs   outputs
	listings  *listing.Store
	tools     builtin.Options // what the settings do not say about built-in tools
	evaluator []string        // see [Deps.Evaluator]
}

// builtin returns the options of the built-in tools.
func (o *sourceOptions) builtin() builtin.Options {
	set, out := o.programs.set, o.tools
	out.Workspace, out.Env = set.Workspace, o.programs.env
	out.ShellTimeout, out.ShellMaxTimeout = orEndless(set.ShellTimeout), orEndless(set.ShellMaxTimeout)
	out.MaxOutput, out.Outputs, out.Protected, out.Fetch = shellOutput(set), o.outputs, o.programs.protectedPaths(), o.fetch()
	out.Session, out.Agent = o.facts.text("sessionKey"), o.facts.text("agentId")
	if d, err := o.programs.folders.State(); err == nil {
		out.StateDir = d.Path
		out.Protected = append(out.Protected, d.Path)
	}
	if dir, err := state.DefaultDir(o.programs.environ); err == nil && dir != out.StateDir {
		out.Protected = append(out.Protected, dir)
	}
	return out
}

// shellOutput is how much run_shell_command keeps of stdout and of stderr: half
// of the limit each, so that its report is not cut again.
func shellOutput(set *settings.Settings) int64 {
	shell := &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Aliases: []string{"bash", "exec"}}}
	limit := set.Limits.Output
	if m := set.OptionsOf(shell).MaxOutput; m != nil {
		limit = *m
	}
	const labels = 1 << 10 // the other lines of the report
	return max(limit/2-labels, limit/4, 1)
}

// command returns the options of the discovery and call commands. A
// variable that is not set disables only this source, when it is used.
func (o *sourceOptions) command() discover.CommandOptions {
	p := o.programs
	return discover.CommandOptions{
		Discovery: p.set.DiscoveryCommand, Call: p.set.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if p.envErr != nil {
				return nil, p.envErr
			}
			return p.expander.Command(c)
		},
		Context: o.facts.json(), ProjectRoot: p.set.ProjectRoot, Env: append(slices.Clone(p.env), p.bytecode()),
		Timeout: p.set.DiscoveryTimeout, Limits: o.limits(), Confine: p.confiner.Programs(confine.Discovery),
		Outputs:   o.listings.OfOutput(registry.SourceCommand, ""),
		Evaluator: o.evaluator,
	}
}

// plugin returns the options for running the plugin with an id.
func (o *sourceOptions) plugin(id string) discover.PluginOptions {
	p := o.programs
	return discover.PluginOptions{
		Context: o.facts.json(), ProjectRoot: p.set.ProjectRoot, Env: append(slices.Clone(p.env), p.bytecode()),
		Settings: func(ctx context.Context) (json.RawMessage, error) { return p.pluginSettings(ctx, id) },
		Timeout:  p.set.DiscoveryTimeout, Limits: o.limits(), Confine: p.confiner.Programs(confine.Plugins), Evaluator: o.evaluator,
	}
}

// limits returns the limits of plugins and of the discovery command.
func (o *sourceOptions) limits() discover.Limits {
	l := o.programs.set.Limits
	return discover.Limits{Discovery: l.DiscoveryOutput, Output: l.Result, Tools: l.Tools, Schema: l.Schema}
}

// fetch returns the settings of web_fetch. References in them are
// expanded when a page is fetched.
func (o *sourceOptions) fetch() builtin.FetchOptions {
	p, set := o.programs, o.programs.set
	out := builtin.FetchOptions{
		AllowHosts:   set.FetchAllow.Values(),
		Processor:    func() ([]string, error) { return p.expander.Command(set.Fetch.Processor) },
		ProcessorDir: set.ProjectRoot,
		Timeout:      orEndless(set.Fetch.Timeout), MaxBytes: set.Fetch.MaxBytes,
		Version: o.tools.Fetch.Version,
		Headers: o.fetchHeaders, ConfineProcessor: p.confiner.ProgramsOf(confine.Processor, set.Fetch.Processor.Origin.Scope),
		ProcessorEnv: p.envFor(set.Fetch.Processor),
	}
	if dir, err := p.folders.Cache(""); err == nil {
		out.CacheDir, out.Refresh = dir.Path, o.tools.Fetch.Refresh
	}
	if set.Fetch.Proxy {
		out.Proxy = proxyOf(p.environ)
	}
	return out
}

// fetchHeaders returns the headers that the settings define for an origin.
func (o *sourceOptions) fetchHeaders(ctx context.Context, origin string) ([]builtin.FetchHeader, error) {
	var out []builtin.FetchHeader
	for _, given := range o.programs.set.Fetch.Headers {
		if given.URL != origin {
			continue
		}
		pairs, err := o.programs.expander.Headers(ctx, given.Headers)
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
func (o *sourceOptions) composites(ctx context.Context) *discover.Composites {
	named := o.programs.set.RawNamed("composites")
	if len(named) == 0 {
		return nil
	}
	return discover.ParseComposites(ctx, named,
		discover.CompositeOptions{Context: o.facts.json(), Evaluator: o.evaluator, ProjectRoot: o.programs.set.ProjectRoot})
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
	c := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	return c.ProxyFunc()
}

// Endless is the time limit used if the setting is 0, which means no limit.
const Endless = 100_000 * time.Hour

func orEndless(limit time.Duration) time.Duration { return cmp.Or(limit, Endless) }
