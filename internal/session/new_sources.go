package session

import (
	"context"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// newSources makes the sources without starting any.
func (s *Session) newSources(ctx context.Context, composites *discover.Composites) *sources {
	env, envErr := ToolEnviron(ctx, s.set, s.expander, s.deps.Environ)
	if envErr != nil && !s.set.DiscoveryCommand.IsSet() {
		s.warn("env_unset", "", envErr.Error(), "commands run without the variables of the setting env")
	}
	s.env = env
	out := &sources{plugins: newPlugins(ctx, s.run, s.cached, envErr), composites: composites}
	own := s.builtinOptions()
	own.Protected = append(own.Protected, pluginPaths(out.plugins, s.set.Workspace)...)
	out.local = []registry.Source{builtin.Source(own)}
	for _, p := range out.plugins {
		if p.source != nil {
			out.local = append(out.local, p.source)
		}
	}
	if composites != nil {
		out.local = append(out.local, composites)
	}
	if s.set.DiscoveryCommand.IsSet() || s.set.DiscoveryCommand.Err != nil {
		out.local = append(out.local, discover.NewCommand(s.commandOptions(envErr)))
	}
	for _, server := range s.set.Servers {
		options := s.ServerOptions(ctx, server)
		if server.Disabled || server.Excluded != nil {
			out.off = append(out.off, OffServer{server, options})
			continue
		}
		out.servers = append(out.servers, mcpclient.New(options))
	}
	out.narrow(s.opts.Preset)
	return out
}

// commandOptions describes the discovery and call commands. A variable that is
// not set fails this source alone, when it is used.
func (s *Session) commandOptions(envErr error) discover.CommandOptions {
	return discover.CommandOptions{
		Discovery: s.set.DiscoveryCommand, Call: s.set.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if envErr != nil {
				return nil, envErr
			}
			return s.expander.Command(c)
		},
		ProjectRoot: s.set.ProjectRoot, Env: s.env, Timeout: s.set.DiscoveryTimeout, Outputs: s.cached.ofOutput(registry.SourceCommand, ""),
	}
}

// builtinOptions tells the built-in tools where they may work.
func (s *Session) builtinOptions() builtin.Options {
	set := s.set
	o := builtin.Options{Workspace: set.Workspace, Env: s.env, ShellTimeout: orEndless(set.ShellTimeout), ShellMaxTimeout: orEndless(set.ShellMaxTimeout),
		MaxOutput: shellOutput(set), Protected: set.ProtectedPaths(s.deps.Environ, s.deps.Dir, set.Globals.Files), Fetch: s.fetchOptions(),
		Session: s.fact("sessionKey"), Caller: s.fact("agentId"), Began: s.deps.Start, Keeper: s.deps.Keeper}
	o.Protected = append(o.Protected, filepath.Join(set.ProjectRoot, lock.Name))
	if d, err := s.deps.Folders.State(); err == nil {
		o.StateDir = d.Path
		o.Protected = append(o.Protected, d.Path)
	}
	return o
}

// shellOutput is what run_shell_command keeps of stdout and of stderr: half of
// the limit each, so that its report is not cut a second time.
func shellOutput(set *settings.Settings) int64 {
	shell := &registry.Tool{Definition: registry.Definition{Name: "run_shell_command", Aliases: []string{"bash", "exec"}}}
	limit := set.Limits.Output
	if m := optionsOf(set, shell).maxOutput; m != nil {
		limit = *m
	}
	const labels = 1 << 10 // the lines of the report beside the output
	return max(limit/2-labels, limit/4, 1)
}
