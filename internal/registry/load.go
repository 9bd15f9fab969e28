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
		f := l.finding(s)
		findings[i] = f
		wg.Go(func() { f.once.Do(func() { l.discover(ctx, s, f) }) })
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
	findings := make([]*finding, len(sources))
	for i, s := range sources {
		f := l.finding(s)
		findings[i] = f
		l.later.Go(func() { f.once.Do(func() { l.discover(ctx, s, f) }) })
	}
	for i, f := range findings {
		<-f.done
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

// usable counts the tools that are not quarantined.
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
		f := &finding{done: make(chan struct{})}
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
	stack.Reserve()
	start := time.Now()
	f.report = SourceReport{Name: s.Name(), State: StateOK}
	defer close(f.done)
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

// Source provides tools. Discover must return soon after ctx is done. It is called
// at most once, except that [Loader.Renew] calls it again. If only some tools
// cannot be used, they are reported as diagnostics. An error means that the whole
// source failed; the tools are then ignored. Discover may be called from any
// goroutine.
//
// A source that has processes or connections also implements io.Closer. The caller
// of the Loader closes it with [Loader.Close], even if Discover failed.
type Source interface {
	// Name is the value of Definition.Source for its tools: "builtin",
	// "plugin:ID", "command", "composite", "mcp:SERVER".
	Name() string
	Discover(context.Context) ([]Tool, []Diagnostic, error)
}

// Severity is the severity of a diagnostic.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Diagnostic is a problem that did not stop the run.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`             // stable snake_case word
	Source   string   `json:"source,omitempty"` // source that it is about
	Tool     string   `json:"tool,omitempty"`   // tool that it is about
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do
}

// Warning returns a diagnostic of severity warning. source and hint may be empty.
func Warning(code, source, message, hint string) Diagnostic {
	return Diagnostic{Severity: SeverityWarning, Code: code, Source: source, Message: message, Hint: hint}
}

// overrides returns the keys of the overrides that apply to a registered tool.
// other reports whether a further name of it belongs to another tool.
func (b *builder) overrides(t *Tool, other func(name string) bool) []string {
	var out []string
	t.eachName(t.Name, func(name string) {
		if b.opts.Overrides.Has(name) && (name == t.Name || !other(name)) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	return out
}

// reshaped returns a builder with the same tools after their overrides have been
// applied. Names are assigned again, in the same order and by the same rules, since
// a new name may be taken. The old name of a renamed tool is not given to another
// tool.
func (b *builder) reshaped(ctx context.Context) *builder {
	if b.opts.Overrides == nil && b.opts.LastShaped == nil {
		return b
	}
	next := newBuilder(b.opts, b.partial, len(b.reg.tools))
	next.reg.hidden, next.reg.diagnostics, next.reg.reports = b.reg.hidden, b.reg.diagnostics, b.reg.reports
	next.reg.misfits = b.reg.misfits
	next.again, next.given, next.passed, next.failed = true, b.given, b.passed, b.failed
	taken := func(name string) bool { return b.reg.names[name] != nil }
	for _, first := range b.reg.tools {
		for _, t := range b.versionsOf(first) {
			next.registerShaped(t, b.shape(ctx, t, taken))
		}
	}
	return next
}

// shape returns a tool as changed by its override; taken reports which names belong to
// tools.
func (b *builder) shape(ctx context.Context, t *Tool, taken func(name string) bool) *Tool {
	if b.opts.Overrides == nil {
		return t
	}
	names := b.overrides(t, taken)
	if len(names) == 0 {
		return t
	}
	shaped := b.opts.Overrides.Reshape(ctx, t, names)
	b.reg.diagnostics = append(b.reg.diagnostics, shaped.settle(newSettler())...)
	if b.partial && shaped.OfServer() { // only the whole registry has plain names
		shaped.Name = shaped.Qualified()
	}
	return &shaped
}

// registerShaped registers a changed tool; upstream is the tool without the
// override.
func (b *builder) registerShaped(upstream, t *Tool) {
	t.Namesakes = namesakes(&t.Definition, b.opts.Builtin)
	h := b.hidesShaped(t)
	if h != nil {
		h.Name, h.Source = upstream.Name, t.Source
		if t.IsRenamed() {
			b.reg.misfits[t.Reshaped.Name] = *h
		}
		b.reg.hidden = append(b.reg.hidden, *h)
		if h.Err != nil {
			b.diagnose(SeverityError, "override_misfit", t.Source, upstream.Name, h.Err.Error(),
				"the tool cannot be used until its override is changed or removed")
		}
		return
	}
	if t.Reshaped != nil {
		b.cutDescription(t)
	}
	if t.IsRenamed() {
		b.renamed[upstream.Name] = t
	}
	b.give(t)
}

// hidesShaped returns why a changed tool is not registered, or nil if it is. The
// filters have already admitted the unchanged tool, under all names that it might
// get.
func (b *builder) hidesShaped(t *Tool) *Hidden {
	if t.Reshaped != nil || t.maybe != nil {
		t.maybe, t.mayKeep = nil, nil
		if h := b.hides(t); h != nil {
			return h
		}
	}
	if b.opts.LastShaped != nil {
		return b.opts.LastShaped(t, t.given)
	}
	return nil
}
