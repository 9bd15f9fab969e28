package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/registry"
)

// renewFor asks the sources again whose word from the cache is not enough: the
// server of a tool that is to be called, so that what is decided on is what it
// has now; and where a name was not found, every source that could have it by
// now. It reports whether the tool has to be looked up again.
func (s *Session) renewFor(ctx context.Context, f Found, err error, q Query) bool {
	if context.Cause(ctx) != nil {
		return false
	}
	missing, notFound := errors.AsType[*registry.NotFoundError](err)
	if err != nil && (!notFound || s.opts.Cache == cache.Offline) {
		return false
	}
	var hidden *registry.Hidden
	if notFound {
		hidden = s.hidden(f.Registry, missing.Name)
	}
	return s.renew(ctx, func(source registry.Source) bool {
		switch {
		case err == nil:
			return q.Call && f.Tool.IsMCP() && source.Name() == f.Tool.Source
		case hidden != nil: // a lock hides what has changed, and it may have changed back
			return s.opts.Locked && source.Name() == hidden.Source
		}
		return true
	})
}

// renew asks those of the wanted sources again that the cache answered for, and
// tells what has changed.
func (s *Session) renew(ctx context.Context, wanted func(registry.Source) bool) bool {
	var again []registry.Source
	before := map[registry.Source][]registry.Tool{}
	for _, source := range s.sources.all() {
		if _, cached := s.cached.sources.Served(source.Name()); cached && wanted(source) {
			again, before[source] = append(again, source), s.loader.Given(source)
			s.cached.sources.Expire(source.Name())
		}
	}
	if len(again) == 0 {
		return false
	}
	done := s.deps.Screen.Watch()
	s.loader.Renew(ctx, again...)
	done()
	for _, source := range again {
		now := s.loader.Given(source)
		if now == nil { // it failed, which the registry tells
			continue
		}
		if changes := changesOf(before[source], now); len(changes) > 0 {
			s.warn("cache_outdated", source.Name(),
				fmt.Sprintf("%s has changed since it was kept in the cache, which is renewed: %s", source.Name(), strings.Join(changes, "; ")), "")
		}
	}
	return true
}

// maxChanges is how many changed tools are named.
const maxChanges = 5

// changesOf names the tools that differ: "echo (description)", "new: x".
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
			out = append(out, "gone: "+before[i].Name)
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
