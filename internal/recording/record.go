package recording

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Options say what a file contains of a session. Text and Params hide secrets. They are also
// required for reading a recording, because params are compared in their written form.
type Options struct {
	Text   func(string) string                   // of results and definitions
	Params func(json.RawMessage) json.RawMessage // nil if they are not JSON
	Omit   func(*registry.Tool) bool             // tools that the session does not have; nil means none
}

// Errors converts errors to and from their form in a file.
type Errors struct {
	Encode func(context.Context, registry.Result, error) (registry.Result, *Failure)
	Decode func(*Failure) error
}

// Recorder collects the exchanges of a run, which may have several sessions. It is safe for
// concurrent use.
type Recorder struct {
	folders Folders
	errors  Errors

	mu      sync.Mutex
	order   []string // the sources, as they are registered
	entries []entry
	size    int
	err     error

	encoding sync.WaitGroup
}

// entry is a line with its sort key.
type entry struct {
	kind, source int
	tool, params string
	list         bool
	data         []byte
}

// NewRecorder returns a Recorder without exchanges.
func NewRecorder(folders Folders, e Errors) *Recorder { return &Recorder{folders: folders, errors: e} }

// Order appends to the order in which sources are written.
func (r *Recorder) Order(sources []registry.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range sources {
		r.order = text.AppendNew(r.order, s.Name())
	}
}

// Listed records what a source listed, and returns the tools that record their calls.
func (r *Recorder) Listed(ctx context.Context, o Options, source string,
	tools []registry.Tool, diags []registry.Diagnostic, err error) []registry.Tool {
	l := line{Kind: kindList, Source: source, Diagnostics: diags}
	if err != nil {
		_, l.Error = r.errors.Encode(ctx, registry.Result{}, err)
	}
	out := slices.Clone(tools)
	for i := range out {
		t := &out[i]
		if o.Omit != nil && o.Omit(t) {
			continue
		}
		listed := tool{Definition: t.Definition, Trusted: t.Trusted, Unmet: t.Unmet}
		if l.Identity == nil {
			l.Identity = t.Identity
		}
		if !bytes.Equal(l.Identity, t.Identity) {
			listed.Identity = t.Identity
		}
		if t.Quarantine != nil {
			listed.Quarantine = t.Quarantine.Error()
		}
		l.Tools = append(l.Tools, listed)
		t.Run = r.recorded(o, source, t)
	}
	r.addLine(o, &l)
	return out
}

func (r *Recorder) recorded(o Options, source string,
	t *registry.Tool) func(context.Context, registry.Call) (registry.Result, error) {
	name, run, about := t.Name, t.Run, t.Subject
	return func(ctx context.Context, call registry.Call) (registry.Result, error) {
		l := line{Kind: kindCall, Source: source, Tool: name, Params: call.Params}
		if about != nil {
			if s, err := about(call); err == nil && (s.Command != "" || len(s.Paths)+len(s.URLs) > 0) {
				l.Subject = &s
			}
		}
		var mu sync.Mutex
		var output strings.Builder
		var reported []registry.Progress
		emit, report := call.Emit, call.Progress
		call.Emit = func(c registry.Content) {
			mu.Lock()
			output.WriteString(c.Text)
			mu.Unlock()
			emit(c)
		}
		call.Progress = func(p registry.Progress) {
			mu.Lock()
			reported = append(reported, p)
			mu.Unlock()
			report(p)
		}
		call.Keep, call.Spill = 0, nil // the whole result is recorded
		start := time.Now()
		res, err := run(ctx, call)
		took := time.Since(start)
		seen := res
		if err != nil || res.IsError {
			seen, l.Error = r.errors.Encode(ctx, res, err)
		}
		l.Result = newResult(&seen, took)
		mu.Lock() // an abandoned tool may still be running
		defer mu.Unlock()
		l.Output, l.Progress = output.String(), slices.Clone(reported)
		r.addLine(o, &l)
		return res, err
	}
}

// Question records a question about a call, with the answer's word and the reason of a
// refusal, which may be empty.
func (r *Recorder) Question(o Options, source, tool string, params json.RawMessage, answer, reason string) {
	l := line{Kind: kindQuestion, Source: source, Tool: tool, Params: params, Answer: answer}
	if reason != "" {
		l.Content = json.RawMessage(jsonx.Quote(reason))
	}
	r.addLine(o, &l)
}

// ServerQuestion records a question of a server and the answer, whose content may be nil.
func (r *Recorder) ServerQuestion(o Options, source, asked, answer string, content json.RawMessage) {
	r.addLine(o, &line{Kind: kindQuestion, Source: source, Asked: asked, Answer: answer, Content: content})
}

// Request records a request to a server about prompts or resources.
func (r *Recorder) Request(ctx context.Context, o Options,
	source, method string, params, result json.RawMessage, err error) {
	l := line{Kind: kindRequest, Source: source, Method: method, Params: params, Content: result}
	if err != nil {
		_, l.Error = r.errors.Encode(ctx, registry.Result{}, err)
	}
	r.addLine(o, &l)
}

// name is the name by which a line is sorted and found.
func (l *line) name() string { return cmp.Or(l.Tool, l.Method) }

// isList reports whether a line has a list, which may be used more than once.
func (l *line) isList() bool { return l.Kind == kindList || strings.HasSuffix(l.Method, "/list") }

// addLine adds a line, which is encoded in the background.
func (r *Recorder) addLine(o Options, l *line) {
	r.mu.Lock()
	i := len(r.entries)
	r.entries = append(r.entries, entry{
		kind:   slices.Index([]string{kindList, kindQuestion, kindCall, kindRequest}, l.Kind),
		source: slices.Index(r.order, l.Source), tool: l.name(), list: l.isList(),
	})
	r.mu.Unlock()
	r.encoding.Go(func() {
		if l.Params != nil {
			l.Params = maskedParams(&r.folders, o, l.Params)
		}
		data, err := encode(l, func(s string) string { return r.folders.hide(o.Text(s)) })
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.err = cmp.Or(r.err, fmt.Errorf("recording a %s of %s: %w", l.Kind, l.Source, err))
			return
		}
		if r.size += len(data) + 1; r.size > MaxSize {
			data, r.err = nil, cmp.Or(r.err, fmt.Errorf("it would be larger than %d MiB", MaxSize>>20))
		}
		r.entries[i].params, r.entries[i].data = string(l.Params), data
	})
}

func maskedParams(f *Folders, o Options, params json.RawMessage) json.RawMessage {
	data, err := rewritten(o.Params(params), f.hide)
	if err != nil {
		return json.RawMessage("null") // cannot happen: params were validated
	}
	return json.RawMessage(jsonx.Canonical(data))
}

// encode encodes a line. It applies change to all strings but those of the params.
func encode(l *line, change func(string) string) ([]byte, error) {
	params := l.Params
	if params != nil {
		l.Params = json.RawMessage("0")
	}
	data, err := jsonx.Marshal(l)
	l.Params = params
	if err == nil {
		data, err = rewritten(bytes.TrimSpace(data), change)
	}
	if params != nil {
		// No string can contain this.
		data = bytes.Replace(data, []byte(`"params":0`), slices.Concat([]byte(`"params":`), params), 1)
	}
	return data, err
}

// Bytes returns the content of the file. The error says why there is none.
func (r *Recorder) Bytes() ([]byte, error) {
	r.encoding.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	slices.SortStableFunc(r.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.source, b.source),
			strings.Compare(a.tool, b.tool), strings.Compare(a.params, b.params))
	})
	first, err := json.Marshal(header{format, version})
	if err != nil {
		return nil, errors.New("the first line cannot be encoded")
	}
	out := append(first, '\n')
	for i, e := range r.entries {
		if e.list && i > 0 && bytes.Equal(e.data, r.entries[i-1].data) {
			continue // listed again without a change
		}
		out = append(append(out, e.data...), '\n')
	}
	return out, nil
}
