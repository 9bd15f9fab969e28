package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// renewFor asks the sources again whose word from the cache is not enough: the
// server of a tool that is to be called, so that what is decided on is what it
// has now; and where a name was not found, every source that could have it by
// now. It reports whether the registry has to be loaded again.
func (a *app) renewFor(ctx context.Context, reg *registry.Registry, t *registry.Tool, err error, toCall bool) bool {
	if context.Cause(ctx) != nil {
		return false
	}
	missing, notFound := errors.AsType[*registry.NotFoundError](err)
	if err != nil && (!notFound || a.globals.Cached) {
		return false
	}
	var hidden *registry.Hidden
	if notFound {
		hidden = a.hidden(reg, missing.Name)
	}
	locked, _ := a.isLocked() // checked when the filters were made
	return a.renew(ctx, func(source registry.Source) bool {
		switch {
		case err == nil:
			return toCall && t.IsMCP() && source.Name() == t.Source
		case hidden != nil: // a lock hides what has changed, and it may have changed back
			return locked && source.Name() == hidden.Source
		}
		return true
	})
}

// renew asks those of the sources again that the cache answered for, and tells
// what has changed.
func (a *app) renew(ctx context.Context, wanted func(registry.Source) bool) bool {
	a.renewing.Lock()
	defer a.renewing.Unlock()
	store := a.sources.memory.listings
	var again []registry.Source
	was := map[registry.Source][]registry.Tool{}
	for _, source := range a.sources.all() {
		if _, kept := store.Served(source.Name()); kept && wanted(source) {
			again, was[source] = append(again, source), a.loader.Given(source)
			store.Expire(source.Name())
		}
	}
	if len(again) == 0 {
		return false
	}
	done := a.watch()
	a.loader.Renew(ctx, again...)
	done()
	for _, source := range again {
		if changes := changesOf(was[source], a.loader.Given(source)); len(changes) > 0 && !a.failed(source) {
			a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "cache_outdated", Source: source.Name(),
				Message: fmt.Sprintf("%s has changed since it was kept in the cache, which is renewed: %s", source.Name(), strings.Join(changes, "; "))})
		}
	}
	return true
}

// failed reports whether a source gave nothing because it failed.
func (a *app) failed(source registry.Source) bool { return a.loader.Given(source) == nil }

// maxChanges is how many changed tools are named.
const maxChanges = 5

// changesOf names the tools that differ: "echo (description)", "new: x".
func changesOf(was, now []registry.Tool) []string {
	before := make(map[string]*registry.Tool, len(was))
	for i := range was {
		before[was[i].Name] = &was[i]
	}
	var out []string
	for i := range now {
		t := &now[i]
		old := before[t.Name]
		delete(before, t.Name)
		switch {
		case old == nil:
			out = append(out, "new: "+t.Name)
		case old.Fingerprint() != t.Fingerprint():
			out = append(out, fmt.Sprintf("%s (%s)", t.Name, strings.Join(changedParts(old, t), ", ")))
		}
	}
	for i := range was {
		if before[was[i].Name] != nil {
			out = append(out, "gone: "+was[i].Name)
		}
	}
	if more := len(out) - maxChanges; more > 0 {
		out = append(out[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	return out
}

func changedParts(was, now *registry.Tool) []string {
	var out []string
	before := was.Parts()
	for i, p := range now.Parts() {
		if p.Value != before[i].Value {
			out = append(out, p.Name)
		}
	}
	return out
}
