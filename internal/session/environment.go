package session

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// DepthVariable gives a child its number of enclosing tool runs. Inside a
// tool's run nobody is asked and no trust is granted, because a tool must not
// approve itself.
const DepthVariable = "TOOLREG_DEPTH"

// Depth returns the number of tool runs that enclose a process with this
// environment. A value that is not a number means 1.
func Depth(environ []string) int {
	v, ok := expand.Find(environ, DepthVariable)
	if !ok || v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 1
	}
	return n
}

// Inside reports whether this process is part of a tool's run, either because
// its environment says so or because it is a descendant of a toolreg process,
// which a tool cannot hide.
func Inside(environ []string) bool {
	return Depth(environ) > 0 || process.HasAncestor("toolreg")
}

// childEnviron returns an environment with the depth of a child, which
// distinguishes a tool's run from a person's.
func childEnviron(environ []string) []string {
	return append(slices.Clone(environ), DepthVariable+"="+strconv.Itoa(Depth(environ)+1))
}

// ToolEnviron returns the environment of commands that tools run, built from
// the settings and the environment of the process. It fails if the setting env
// refers to a variable that is not set.
func ToolEnviron(ctx context.Context, set *settings.Settings, x *settings.Expander, environ []string) ([]string, error) {
	pairs, err := x.Pairs(ctx, set.Env)
	if err != nil {
		return nil, err
	}
	env := settings.Environment(environ, pairs, set.InheritEnv)
	return append(env, DepthVariable+"="+strconv.Itoa(Depth(environ)+1)), nil
}

// fetchOptions returns the settings of web_fetch. References in them are
// expanded when a page is fetched.
func (r *run) fetchOptions() builtin.FetchOptions {
	set := r.set
	o := builtin.FetchOptions{
		AllowHosts:   set.FetchAllow.Values(),
		Processor:    func() ([]string, error) { return r.expander.Command(set.Fetch.Processor) },
		ProcessorDir: set.ProjectRoot,
		Timeout:      orEndless(set.Fetch.Timeout), MaxBytes: set.Fetch.MaxBytes,
		Version: r.deps.Version,
		Headers: r.fetchHeaders, ConfineProcessor: r.confiner.Programs(confine.Processor),
	}
	if dir, err := state.DefaultCacheDir(r.deps.Environ); err == nil {
		o.CacheDir, o.Refresh = dir, r.opts.Cache == cache.Renew
	}
	if set.Fetch.Proxy {
		o.Proxy = proxyOf(r.deps.Environ)
	}
	return o
}

// fetchHeaders returns the headers that the settings have for an origin.
func (r *run) fetchHeaders(ctx context.Context, origin string) ([]builtin.FetchHeader, error) {
	var out []builtin.FetchHeader
	for _, o := range r.set.Fetch.Headers {
		if o.URL != origin {
			continue
		}
		pairs, err := r.expander.Headers(ctx, o.Headers)
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			out = append(out, builtin.FetchHeader{Name: p.Name, Value: p.Value})
		}
	}
	return out, nil
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

// Endless is the time limit if the setting is 0.
const Endless = 100_000 * time.Hour

func orEndless(limit time.Duration) time.Duration { return cmp.Or(limit, Endless) }
