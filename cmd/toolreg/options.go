package main

import (
	"context"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/settings"
)

// builtinOptions tells the built-in tools where they may work.
func builtinOptions(a *app, s *settings.Settings, env []string) builtin.Options {
	o := builtin.Options{Workspace: s.Workspace, Env: env, ShellTimeout: s.ShellTimeout,
		Protected: s.OwnPaths(a.environ, a.dir, a.globals.Files)}
	if d, err := a.stateDir(); err == nil {
		o.StateDir = d.Path
		o.Protected = append(o.Protected, d.Path)
	}
	return o
}

// commandOptions describes the discovery and call commands. A variable that is
// not set fails this source alone, when it is used.
func commandOptions(s *settings.Settings, x *settings.Expander, env []string, envErr error) discover.CommandOptions {
	return discover.CommandOptions{
		Discovery: s.DiscoveryCommand, Call: s.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if envErr != nil {
				return nil, envErr
			}
			return x.Command(c)
		},
		ProjectRoot: s.ProjectRoot, Env: env, Timeout: s.DiscoveryTimeout,
	}
}

// toolEnviron is the environment of commands that tools run: the minimum a
// program needs, what the setting env adds, all of ours with inheritEnv.
func (a *app) toolEnviron(ctx context.Context, s *settings.Settings, x *settings.Expander) ([]string, error) {
	pairs, err := x.Pairs(ctx, s.Env)
	if err != nil {
		return nil, err
	}
	env := settings.Environment(a.environ, pairs, s.InheritEnv)
	return append(env, depthVariable+"="+nextDepth(a.environ)), nil
}
