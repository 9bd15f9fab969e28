package main

import (
	"cmp"
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// builtinOptions tells the built-in tools where they may work.
func builtinOptions(a *app, s *settings.Settings, env []string) builtin.Options {
	o := builtin.Options{Workspace: s.Workspace, Env: env, ShellTimeout: orNone(s.ShellTimeout), ShellMaxTimeout: orNone(s.ShellMaxTimeout),
		MaxOutput: shellOutput(s), Protected: s.OwnPaths(a.environ, a.dir, a.globals.Files), Fetch: fetchOptions(a, s),
		Session: a.fact(s, "sessionKey"), Caller: a.fact(s, "agentId"), Began: a.began, Keeper: keeperArgv()}
	o.Protected = append(o.Protected, filepath.Join(s.ProjectRoot, lock.Name))
	if d, err := a.stateDir(); err == nil {
		o.StateDir = d.Path
		o.Protected = append(o.Protected, d.Path)
	}
	return o
}

// endless stands for a time limit that the settings switch off with 0.
const endless = 100_000 * time.Hour

func orNone(limit time.Duration) time.Duration { return cmp.Or(limit, endless) }

// fetchOptions tells web_fetch what the settings say. What is to be expanded is
// expanded when a page is fetched.
func fetchOptions(a *app, s *settings.Settings) builtin.FetchOptions {
	x := settings.NewExpander(s.ProjectRoot, a.environ)
	o := builtin.FetchOptions{
		AllowHosts:   s.FetchAllow.Values(),
		Processor:    func() ([]string, error) { return x.Command(s.Fetch.Processor) },
		ProcessorDir: s.ProjectRoot,
		Timeout:      orNone(s.Fetch.Timeout), MaxBytes: s.Fetch.MaxBytes,
		Version: version,
		Headers: func(ctx context.Context, origin string) ([]builtin.FetchHeader, error) {
			return fetchHeaders(ctx, s, x, origin)
		},
	}
	if dir, err := state.DefaultCacheDir(a.environ); err == nil {
		o.CacheDir = dir
	}
	if s.Fetch.Proxy {
		o.Proxy = proxyOf(a.environ)
	}
	return o
}

// proxyOf reads the variables that name proxies, in capitals or not.
func proxyOf(environ []string) func(*url.URL) (*url.URL, error) {
	either := func(name string) string {
		v, ok := lookupEnv(environ, name)
		if !ok {
			v, _ = lookupEnv(environ, strings.ToLower(name))
		}
		return v
	}
	c := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	return c.ProxyFunc()
}

// fetchHeaders are the headers that the settings have for one origin.
func fetchHeaders(ctx context.Context, s *settings.Settings, x *settings.Expander, origin string) ([]builtin.FetchHeader, error) {
	var out []builtin.FetchHeader
	for _, o := range s.Fetch.Headers {
		if o.URL != origin {
			continue
		}
		pairs, err := x.Headers(ctx, o.Headers)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			out = append(out, builtin.FetchHeader{Name: p.Name, Value: p.Value})
		}
	}
	return out, nil
}

// commandOptions describes the discovery and call commands. A variable that is
// not set fails this source alone, when it is used.
func commandOptions(s *settings.Settings, x *settings.Expander, m *memory, env []string, envErr error) discover.CommandOptions {
	return discover.CommandOptions{
		Discovery: s.DiscoveryCommand, Call: s.CallCommand,
		Expand: func(c settings.Command) ([]string, error) {
			if envErr != nil {
				return nil, envErr
			}
			return x.Command(c)
		},
		ProjectRoot: s.ProjectRoot, Env: env, Timeout: s.DiscoveryTimeout, Outputs: m.ofOutput(registry.SourceCommand, ""),
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
