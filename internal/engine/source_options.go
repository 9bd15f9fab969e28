package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// sourceOptions derives from the settings the options of the sources that are not servers.
type sourceOptions struct {
	*run
	cached *listingStore
	envErr error // why the environment of commands is incomplete
}

// builtin returns the options of the built-in tools.
func (o *sourceOptions) builtin() builtin.Options {
	set := o.set
	out := builtin.Options{Workspace: set.Workspace, Env: o.env, ShellTimeout: orEndless(set.ShellTimeout), ShellMaxTimeout: orEndless(set.ShellMaxTimeout),
		MaxOutput: shellOutput(set), Outputs: toolRuns{o.run}, Protected: o.protectedPaths(), Fetch: o.fetch(),
		Session: o.fact("sessionKey"), Agent: o.fact("agentId"), Began: o.deps.Start, Keeper: o.deps.Keeper}
	if d, err := o.deps.Folders.State(); err == nil {
		out.StateDir = d.Path
		out.Protected = append(out.Protected, d.Path)
	}
	if dir, err := state.DefaultDir(o.deps.Environ); err == nil && dir != out.StateDir {
		out.Protected = append(out.Protected, dir)
	}
	return out
}

// shellOutput is how much run_shell_command keeps of stdout and of stderr: half
// of the limit each, so that its report is not cut again.
func shellOutput(set *settings.Settings) int64 {
	shell := &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Aliases: []string{"bash", "exec"}}}
	limit := set.Limits.Output
	if m := toolSettingsOf(set, shell).MaxOutput; m != nil {
		limit = *m
	}
	const labels = 1 << 10 // the other lines of the report
	return max(limit/2-labels, limit/4, 1)
}

// command returns the options of the discovery and call commands. A
// variable that is not set disables only this source, when it is used.
func (o *sourceOptions) command() discover.CommandOptions {
	return discover.CommandOptions{
		Discovery: o.set.DiscoveryCommand, Call: o.set.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if o.envErr != nil {
				return nil, o.envErr
			}
			return o.expander.Command(c)
		},
		Context: o.context(), ProjectRoot: o.set.ProjectRoot, Env: append(slices.Clone(o.env), o.bytecode()),
		Timeout: o.set.DiscoveryTimeout, Limits: o.limits(), Confine: o.confiner.Programs(confine.Discovery), Outputs: o.cached.OfOutput(registry.SourceCommand, ""),
		Evaluator: o.deps.Evaluator,
	}
}

// plugin returns the options for running the plugin with an id.
func (o *sourceOptions) plugin(id string) discover.PluginOptions {
	return discover.PluginOptions{
		Context: o.context(), ProjectRoot: o.set.ProjectRoot, Env: append(slices.Clone(o.env), o.bytecode()),
		Settings: func(ctx context.Context) (json.RawMessage, error) { return o.pluginSettings(ctx, id) },
		Timeout:  o.set.DiscoveryTimeout, Limits: o.limits(), Confine: o.confiner.Programs(confine.Plugins), Evaluator: o.deps.Evaluator,
	}
}

// pluginSettings returns the settings of one plugin, expanded; nil if there are
// none.
func (r *run) pluginSettings(ctx context.Context, id string) (json.RawMessage, error) {
	for _, n := range r.set.RawNamed("plugins.settings") {
		if n.Name == id {
			return expand.JSON(n.JSON(), func(text string) (string, error) { return r.expander.Secret(ctx, text, n.Origin.Scope) })
		}
	}
	return nil, nil
}

// limits returns the limits of plugins and of the discovery command.
func (o *sourceOptions) limits() discover.Limits {
	l := o.set.Limits
	return discover.Limits{Discovery: l.DiscoveryOutput, Output: l.Result, Tools: l.Tools, Schema: l.Schema}
}

// fetch returns the settings of web_fetch. References in them are
// expanded when a page is fetched.
func (o *sourceOptions) fetch() builtin.FetchOptions {
	set := o.set
	out := builtin.FetchOptions{
		AllowHosts:   set.FetchAllow.Values(),
		Processor:    func() ([]string, error) { return o.expander.Command(set.Fetch.Processor) },
		ProcessorDir: set.ProjectRoot,
		Timeout:      orEndless(set.Fetch.Timeout), MaxBytes: set.Fetch.MaxBytes,
		Version: o.deps.Version,
		Headers: o.fetchHeaders, ConfineProcessor: o.confiner.ProgramsOf(confine.Processor, set.Fetch.Processor.Origin.Scope),
		ProcessorEnv: o.envFor(set.Fetch.Processor),
	}
	if dir, err := o.deps.Folders.Cache(""); err == nil {
		out.CacheDir, out.Refresh = dir.Path, o.opts.Cache == cache.Renew
	}
	if set.Fetch.Proxy {
		out.Proxy = proxyOf(o.deps.Environ)
	}
	return out
}

// fetchHeaders returns the headers that the settings define for an origin.
func (o *sourceOptions) fetchHeaders(ctx context.Context, origin string) ([]builtin.FetchHeader, error) {
	var out []builtin.FetchHeader
	for _, given := range o.set.Fetch.Headers {
		if given.URL != origin {
			continue
		}
		pairs, err := o.expander.Headers(ctx, given.Headers)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			out = append(out, builtin.FetchHeader{Name: p.Name, Value: p.Value})
		}
	}
	return out, nil
}

// context returns the context of this run: the setting context, overridden by --context
// and by the values that toolreg sets itself.
func (o *sourceOptions) context() json.RawMessage {
	facts := map[string]json.RawMessage{"sandboxed": json.RawMessage("false")}
	for _, n := range o.set.RawNamed("context") {
		value, err := expand.JSON(n.JSON(), o.expander.Expand)
		if err != nil {
			o.warn("context_unset", "", fmt.Sprintf("%s: context.%s is ignored: %s", n.Origin, n.Name, err), "")
			continue
		}
		facts[n.Name] = value
	}
	for _, fact := range o.opts.Context {
		facts[fact.Name] = fact.Value
	}
	set := func(name, value string) {
		if text, err := json.Marshal(value); err == nil && value != "" {
			facts[name] = text
		}
	}
	set("channel", o.set.Globals.Channel)
	set("workspace", o.set.Workspace)
	set("projectRoot", o.set.ProjectRoot)
	out, err := json.Marshal(facts)
	if err != nil {
		return json.RawMessage("{}") // cannot happen: each value is JSON
	}
	return out
}

// fact returns one value of the context as text; "" if it is not set or is
// neither text nor a number.
func (r *run) fact(name string) string {
	var value json.RawMessage
	for _, n := range r.set.RawNamed("context") {
		if n.Name == name {
			// A value that cannot be expanded is reported where the context is
			// used.
			value, _ = expand.JSON(n.JSON(), r.expander.Expand)
		}
	}
	for _, fact := range r.opts.Context {
		if fact.Name == name {
			value = fact.Value
		}
	}
	var text string
	var number json.Number
	if json.Unmarshal(value, &text) != nil && json.Unmarshal(value, &number) == nil {
		text = number.String()
	}
	return text
}

// composites reads the setting composites; call calls the tool of a step. It returns nil
// if there are none.
func (o *sourceOptions) composites(ctx context.Context, call discover.StepCall, scripts *Scripts) *discover.Composites {
	named := o.set.RawNamed("composites")
	if len(named) == 0 {
		return nil
	}
	return discover.ParseComposites(ctx, named, discover.CompositeOptions{Call: call, Context: o.context(), Evaluator: o.deps.Evaluator, ProjectRoot: o.set.ProjectRoot,
		Script: func(ctx context.Context, file string, text []byte, call registry.Call) (registry.Result, error) {
			return scripts.Run(ctx, file, text, call.Params, call, true)
		}})
}
