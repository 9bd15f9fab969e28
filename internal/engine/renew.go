package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// renewer queries sources again whose listings came from the cache.
type renewer struct {
	*run
	sources *sources
	loader  *registry.Loader
	cached  *cache.Store
}

// renew queries those of the wanted sources again whose listings came from the
// cache, and reports what has changed. With kept, it also queries servers that were
// kept since an earlier run, which do not always report changes.
func (r *renewer) renew(ctx context.Context, kept bool, wanted func(registry.Source) bool) bool {
	var again []registry.Source
	before := map[registry.Source][]registry.Tool{}
	for _, source := range r.sources.all() {
		server, isServer := source.(*mcpclient.Source)
		if kept && isServer && server.Remembered() && wanted(source) {
			again = append(again, source)
		} else if _, cached := r.cached.Served(source.Name()); cached && wanted(source) {
			again, before[source] = append(again, source), r.loader.Given(source)
			r.cached.Expire(source.Name(), cache.Listing)
		}
	}
	if len(again) == 0 {
		return false
	}
	done := r.deps.Screen.Watch()
	r.loader.Renew(ctx, again...)
	done()
	for _, source := range again {
		now := r.loader.Given(source)
		if _, cached := before[source]; now == nil || !cached { // it failed, which the registry reports
			continue
		}
		if changes := changesOf(before[source], now); len(changes) > 0 {
			r.warn("cache_outdated", source.Name(),
				fmt.Sprintf("%s has changed since it was cached; the cache was updated: %s", source.Name(), strings.Join(changes, "; ")), "")
		}
	}
	return true
}

// maxChanges is how many changed tools are named.
const maxChanges = 5

// changesOf names the tools that differ, such as "echo (description)" or "new:
// x".
func changesOf(before, now []registry.Tool) []string {
	old := make(map[string]*registry.Tool, len(before))
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	var out []string
	for i := range now {
		t := &now[i]
		was := old[t.Name]
		delete(old, t.Name)
		switch {
		case was == nil:
			out = append(out, "new: "+t.Name)
		case was.Fingerprint() != t.Fingerprint():
			out = append(out, fmt.Sprintf("%s (%s)", t.Name, strings.Join(changedParts(was, t), ", ")))
		}
	}
	for i := range before {
		if old[before[i].Name] != nil {
			out = append(out, "removed: "+before[i].Name)
		}
	}
	if more := len(out) - maxChanges; more > 0 {
		out = append(out[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	return out
}

func changedParts(before, now *registry.Tool) []string {
	var out []string
	old := before.Parts()
	for i, p := range now.Parts() {
		if p.Value != old[i].Value {
			out = append(out, p.Name)
		}
	}
	return out
}
