package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/stack"
)

// Loader runs sources and builds registries from their tools. It discovers each
// source at most once, so extending a registry by further sources does not discover
// the earlier ones again.
type Loader struct {
	opts  Options
	mu    sync.Mutex
	found map[Source]*finding
	later sync.WaitGroup // sources that LoadFor did not wait for
}

// NewLoader returns a Loader that has not run any source.
func NewLoader(opts Options) *Loader {
	return &Loader{opts: opts, found: map[Source]*finding{}}
}

// Load discovers the sources concurrently and registers their tools in the order of
// the slice, regardless of which finishes first. partial means that some sources
// are missing from the slice. Since the plain name of an MCP tool could then belong
// to another server, MCP tools get only their qualified names.
func (l *Loader) Load(ctx context.Context, sources []Source, partial bool) *Registry {
	findings := make([]*finding, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() { findings[i] = l.run(ctx, s) })
	}
	wg.Wait()
	return l.build(ctx, findings, partial)
}

func (l *Loader) build(ctx context.Context, findings []*finding, partial bool) *Registry {
	n := 0
	for _, f := range findings {
		n += len(f.tools)
	}
	for {
		b := newBuilder(l.opts, partial, n)
		for _, f := range findings {
			b.add(f)
		}
		reg := b.reshaped(ctx).registry()
		if partial || l.opts.Names == nil || l.opts.Names.Keep(ctx, slices.Collect(maps.Values(b.given))) {
			return reg
		}
	}
}

// LoadFor is like [Loader.Load] for all sources if only one tool is needed. It
// waits for the sources in order until a server provides the tool: servers after it
// cannot take the name, while a discovery command may take that of a built-in tool.
// The other sources continue until they finish or Close stops them. lookup looks up
// the tool in a registry.
func (l *Loader) LoadFor(ctx context.Context, sources []Source, name string, lookup func(*Registry) error) *Registry {
	sources = l.upTo(sources, name)
	findings, done := make([]*finding, len(sources)), make([]chan *finding, len(sources))
	for i, s := range sources {
		done[i] = make(chan *finding, 1)
		l.later.Go(func() { done[i] <- l.run(ctx, s) })
	}
	for i := range findings {
		f := <-done[i]
		findings[i] = f
		if _, ok := ServerOf(f.report.Name); !ok || !f.mayHave(name, l.opts.Overrides) {
			continue
		}
		reg := l.build(ctx, findings[:i+1], false)
		if lookup(reg) == nil {
			return reg
		}
	}
	return l.build(ctx, findings, false)
}

func (f *finding) usable() int {
	n := 0
	for i := range f.tools {
		if f.tools[i].Quarantine == nil {
			n++
		}
	}
	return n
}

// mayHave reports whether a tool of the source could be registered under a name.
func (f *finding) mayHave(name string, o Overrides) bool {
	plain, _, _ := cutVersion(name)
	return slices.ContainsFunc(f.tools, func(t Tool) bool {
		valid := ValidName(t.Name)
		renamed, _ := newNames(o, &t, valid)
		return valid == plain || slices.Contains(t.Spellings(), plain) || slices.Contains(renamed, plain)
	})
}

// Renew discovers sources again, concurrently; sources that used a cached
// listing do not use it again. Existing registries do not change; Load builds
// new ones.
func (l *Loader) Renew(ctx context.Context, sources ...Source) {
	var wg sync.WaitGroup
	for _, s := range sources {
		f := new(finding)
		l.mu.Lock()
		l.found[s] = f
		l.mu.Unlock()
		wg.Go(func() { f.once.Do(func() { l.discover(ctx, s, f) }) })
	}
	wg.Wait()
}

// Refresh is like [Loader.Renew], but a source that fails keeps its earlier tools, unless its
// login is over. The returned error joins the errors of these sources.
func (l *Loader) Refresh(ctx context.Context, sources ...Source) error {
	before := map[Source]*finding{}
	for _, s := range sources {
		before[s] = l.finding(s)
	}
	l.Renew(ctx, sources...)
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, s := range sources {
		if err := l.found[s].report.Err; err != nil {
			if !errors.Is(err, ErrNeedsLogin) {
				l.found[s] = before[s]
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Given returns the tools of a source as it returned them, before filters, with its
// own names. It returns nil if the source was not discovered, has not finished or
// failed.
func (l *Loader) Given(s Source) []Tool {
	l.mu.Lock()
	f := l.found[s]
	l.mu.Unlock()
	if f == nil || !f.done.Load() {
		return nil
	}
	return f.tools
}

// Release forgets a source, which Close then does not close.
func (l *Loader) Release(s Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.found, s)
}

// Close closes all discovered sources that can be closed, concurrently.
func (l *Loader) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, 0, len(l.found))
	var mu sync.Mutex
	for s := range l.found {
		c, ok := s.(io.Closer)
		if !ok {
			continue
		}
		wg.Go(func() {
			if err := c.Close(); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("closing %s: %w", s.Name(), err))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	l.later.Wait() // these end, because their sources are closed
	return errors.Join(errs...)
}

// run discovers a source once. If that is broken off because the call that it was for has ended, it
// does not count: the next one that needs the source, or also waits for it, discovers it again.
func (l *Loader) run(ctx context.Context, s Source) *finding {
	for {
		f := l.finding(s)
		f.once.Do(func() { l.discover(ctx, s, f) })
		if !f.brokenOff {
			return f
		}
		l.mu.Lock()
		if l.found[s] == f {
			l.found[s] = new(finding) // it must stay there for Close
		}
		l.mu.Unlock()
		if ctx.Err() != nil {
			return f
		}
	}
}

func (l *Loader) finding(s Source) *finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.found[s]
	if f == nil {
		f = new(finding)
		l.found[s] = f
	}
	return f
}

func (l *Loader) discover(ctx context.Context, s Source, f *finding) {
	stack.Reserve()
	start := time.Now()
	f.report = SourceReport{Name: s.Name(), State: StateOK}
	defer f.done.Store(true)
	if l.opts.Begins != nil {
		defer l.opts.Begins(s.Name())()
	}
	defer func() {
		if p := recover(); p != nil {
			f.tools, f.report.Err = nil, fmt.Errorf("%w: panic in source: %v", ErrSourceFailed, p)
		}
		f.report.Duration, f.report.Tools = time.Since(start), f.usable()
		if f.report.Err != nil {
			f.tools, f.report.State, f.report.Tools = nil, StateFailed, 0
			f.brokenOff = ctx.Err() != nil
		}
		if l.opts.Observe != nil {
			l.opts.Observe(f.report)
		}
	}()
	f.tools, f.diags, f.report.Err = s.Discover(ctx)
	if l.opts.Found != nil {
		f.tools = l.opts.Found(ctx, s.Name(), f.tools, f.diags, f.report.Err)
	}
	f.diags = append(f.diags, Settle(f.tools)...)
}

// upTo returns the sources that are needed to find a tool: if the name is kept for a server, only
// those up to that server.
func (l *Loader) upTo(sources []Source, name string) []Source {
	if l.opts.Names == nil {
		return sources
	}
	plain, _, _ := cutVersion(name)
	o := l.opts.Names.Owner(plain)
	if !o.Kept || o.Server == "" {
		return sources
	}
	local := 0
	for i, s := range sources {
		server, ok := ServerOf(s.Name())
		switch {
		case ok && server == o.Server:
			return sources[:i+1]
		case !ok:
			local = i + 1
		}
	}
	return sources[:local]
}
