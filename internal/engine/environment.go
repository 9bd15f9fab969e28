package engine

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/state"
)

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

// fetchHeaders returns the headers that the settings define for an origin.
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

// Endless is the time limit used if the setting is 0, which means no limit.
const Endless = 100_000 * time.Hour

func orEndless(limit time.Duration) time.Duration { return cmp.Or(limit, Endless) }
