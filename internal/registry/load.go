package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// State says what became of a source (spec section 3, discover).
type State string

// The states of a source.
const (
	StateOK      State = "ok"
	StateFailed  State = "failed"
	StateSkipped State = "skipped"
)

// SourceReport tells what one source gave.
type SourceReport struct {
	Name     string
	State    State
	Tools    int // tools found, before filters and conflicts
	Duration time.Duration
	Err      error // why it failed
}

// Hidden is a tool that a setting kept out of the registry.
type Hidden struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Reason  string `json:"reason"`
	Setting string `json:"setting,omitempty"` // file:line, flag or "default"
}

// Filter decides whether a tool is registered: nil lets it in. The Hidden it
// returns needs no Name and Source; they are filled in.
type Filter func(*Tool) *Hidden

// Conflict rules for discovered tools (setting conflicts.discovered).
const (
	ConflictOverwrite = "overwrite"
	ConflictReject    = "reject"
	ConflictQualify   = "qualify"
)

// Options tune a [Loader]. The zero value registers everything.
type Options struct {
	// Filters run in order on each tool before it takes a name; the first that
	// hides it is the one reported.
	Filters []Filter
	// Conflicts is the rule for discovered tools whose name is taken; "" means
	// overwrite.
	Conflicts string
	// Observe is called as each source finishes, from that source's goroutine.
	// May be nil.
	Observe func(SourceReport)
}

// Loader runs sources and builds registries from what they gave. Each source
// is discovered at most once in the life of a Loader, so that a registry can be
// widened by further sources at no further cost.
type Loader struct {
	opts  Options
	mu    sync.Mutex
	found map[Source]*finding
}

type finding struct {
	once   sync.Once
	done   chan struct{} // closed when the rest is there
	tools  []Tool
	diags  []Diagnostic
	report SourceReport
}

// NewLoader returns a Loader that has run nothing yet.
func NewLoader(opts Options) *Loader {
	return &Loader{opts: opts, found: map[Source]*finding{}}
}

// Load discovers the sources all at once and registers their tools in the
// order of the slice, whatever finishes first. With partial set the slice does
// not hold all sources there are, so that a plain name of an MCP tool could
// belong to another server: MCP tools then go by their qualified names alone.
func (l *Loader) Load(ctx context.Context, sources []Source, partial bool) *Registry {
	findings := make([]*finding, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		f := l.finding(s)
		findings[i] = f
		wg.Go(func() { f.once.Do(func() { l.discover(ctx, s, f) }) })
	}
	wg.Wait()
	b := newBuilder(l.opts, partial, findings)
	for _, f := range findings {
		b.add(f)
	}
	return b.registry()
}

// Renew discovers sources once more, all at once, whatever they gave before:
// those that answered from a cache ask for real the second time. Registries that
// were built stay as they are; Load builds new ones.
func (l *Loader) Renew(ctx context.Context, sources ...Source) {
	var wg sync.WaitGroup
	for _, s := range sources {
		f := &finding{done: make(chan struct{})}
		l.mu.Lock()
		l.found[s] = f
		l.mu.Unlock()
		wg.Go(func() { f.once.Do(func() { l.discover(ctx, s, f) }) })
	}
	wg.Wait()
}

// Given returns the tools that a source gave, as it named them, before filters
// and conflicts; nil for one that was not discovered, has not answered yet, or
// failed.
func (l *Loader) Given(s Source) []Tool {
	l.mu.Lock()
	f := l.found[s]
	l.mu.Unlock()
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return f.tools
	default:
		return nil
	}
}

// Close closes every source that was discovered and can be closed, all at once.
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
	return errors.Join(errs...)
}

func (l *Loader) finding(s Source) *finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.found[s]
	if f == nil {
		f = &finding{done: make(chan struct{})}
		l.found[s] = f
	}
	return f
}

func (l *Loader) discover(ctx context.Context, s Source, f *finding) {
	start := time.Now()
	f.report = SourceReport{Name: s.Name(), State: StateOK}
	defer close(f.done)
	defer func() {
		if p := recover(); p != nil {
			f.tools, f.report.Err = nil, fmt.Errorf("%w: panic in source: %v", ErrSourceFailed, p)
		}
		f.report.Duration, f.report.Tools = time.Since(start), len(f.tools)
		if f.report.Err != nil {
			f.tools, f.report.State, f.report.Tools = nil, StateFailed, 0
		}
		if l.opts.Observe != nil {
			l.opts.Observe(f.report)
		}
	}()
	f.tools, f.diags, f.report.Err = s.Discover(ctx)
}
