package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/middleware"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// Scripts runs scripts over the tools of a session, and the steps of composites. It is safe for
// concurrent use.
type Scripts struct {
	gate    *gate
	finder  *finder
	offers  *Offers
	folders *state.Folders
	engine  []string // see [Deps.ScriptEngine]
}

// Step implements [registry.Steps]. It starts only the server that the step needs.
func (s *Scripts) Step(ctx context.Context, name string, params json.RawMessage) (registry.Result, error) {
	f, err := s.finder.Find(ctx, name, Query{Call: true, Step: true})
	if err != nil {
		return registry.Result{}, err
	}
	return s.gate.call(ctx, f, registry.Call{Tool: name, Params: params, Steps: s}, nil)
}

// Script implements [registry.Steps].
func (s *Scripts) Script(ctx context.Context, file string, text []byte, call registry.Call) (registry.Result, error) {
	return s.Run(ctx, file, text, call.Params, call, true)
}

func (s *Scripts) limits() script.Limits {
	set := s.finder.set.Script
	return script.Limits{Steps: uint64(set.Steps), Calls: set.Calls, Memory: uint64(set.Memory), Timeout: set.Timeout,
		Output: s.finder.set.Limits.Output, Result: s.finder.set.Limits.Result}
}

// Run runs a script. If steps is set, the script may call what only steps of composites may. The
// error is a *settings.InputError if the script cannot be parsed, an *exec.ScriptError if a call
// ended it, or the cause of ctx.
func (s *Scripts) Run(ctx context.Context, file string, text []byte,
	params json.RawMessage, call registry.Call, steps bool) (registry.Result, error) {
	if len(s.engine) == 0 {
		return registry.Result{}, errors.New("scripts cannot be run here, because the path of toolreg is unknown")
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	record.RunsScript(ctx, hash)
	r := &scriptRun{Scripts: s, steps: steps, id: call.ID, progress: call.Progress,
		journal: s.journal(ctx, hash, jsonx.Canonical(params)), failed: map[uint32]error{}, taken: map[string]bool{}}
	clock := &script.Clock{}
	out, err := script.Run(exec.WithPause(ctx, clock.Pause),
		script.Script{
			Name:   file,
			Text:   text,
			Params: params,
			Limits: s.limits(),
			Engine: s.engine,
			Host:   r,
			Clock:  clock,
		})
	return r.finish(ctx, out, err)
}

// journal returns the caller's journal of the run that parts identify.
func (s *Scripts) journal(ctx context.Context, parts ...any) *Journal {
	set := s.finder.set
	name := hashOf(append(parts, set.Workspace, set.ProjectRoot, caller.Name(ctx))...) + ".json"
	return openJournal(s.folders, name, s.finder.reports)
}

// scriptRun is one run of a script. It is its [script.Host].
type scriptRun struct {
	*Scripts
	steps    bool
	id       json.RawMessage // of the call that runs the script
	progress func(registry.Progress)
	journal  *Journal

	mu      sync.Mutex
	lines   strings.Builder
	media   []registry.Content
	size    int64 // bytes of media
	failed  map[uint32]error
	taken   map[string]bool // of isTool
	results []string        // names of the tools whose calls succeeded
}

func (r *scriptRun) Print(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines.WriteString(line + "\n")
}

func (r *scriptRun) Call(ctx context.Context, c script.Call) script.Reply {
	name, err := r.name(ctx, c.Path)
	var result registry.Result
	if err == nil {
		result, err = r.journal.Once(name, c.Params,
			func() (registry.Result, bool, error) { return r.make(ctx, name, c) })
	}
	if err != nil {
		r.mu.Lock()
		r.failed[c.ID] = err
		r.mu.Unlock()
		open, asks := errors.AsType[*exec.NeedsConfirmation](err)
		return script.Reply{Err: cmp.Or(err.Error(), "the call failed"),
			Category: scriptCategory(err), Ends: asks && open.Kept != nil}
	}
	if result.IsError {
		r.mu.Lock()
		r.failed[c.ID] = &exec.ToolError{Category: result.ErrorCategory}
		r.mu.Unlock()
		return script.Reply{
			Err:      cmp.Or(result.Text(), result.Summary, "the tool reported an error"),
			Category: string(cmp.Or(result.ErrorCategory, registry.ErrorExecution)),
		}
	}
	return r.reply(&result)
}

// make makes a call, and reports whether it may be made again.
func (r *scriptRun) make(ctx context.Context, name string,
	c script.Call) (result registry.Result, again bool, err error) {
	f, err := r.finder.Find(ctx, name, Query{Call: true, Step: r.steps, Scope: !r.steps})
	if err != nil {
		return registry.Result{}, false, r.noServer(ctx, c.Path, err)
	}
	if r.progress != nil {
		r.progress(registry.Progress{Done: float64(c.ID), Message: name})
	}
	result, err = r.gate.call(ctx, f,
		registry.Call{Tool: name, Params: c.Params, ID: r.id, Place: c.At, Steps: r.Scripts}, nil)
	if err == nil && !result.IsError {
		r.mu.Lock()
		r.results = append(r.results, name)
		r.mu.Unlock()
	}
	return result, middleware.ReadOnly(f.Tool), err
}

func (r *scriptRun) name(ctx context.Context, path []string) (string, error) {
	if len(path) == 1 {
		return path[0], nil
	}
	name := path[0] + "__" + path[1]
	taken, err := r.isTool(ctx, path[0])
	if err != nil {
		return "", err
	}
	if taken {
		return "", &registry.NotFoundError{Name: name, Near: []string{fmt.Sprintf("tools[%q]", name)}}
	}
	return name, nil // if there is no such server, the look-up says so
}

// noServer returns err, the error of a lookup, or, if path names a server that is not in the
// settings, an error that says so.
func (s *Scripts) noServer(ctx context.Context, path []string, err error) error {
	missing, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok || len(path) != 2 || missing.Hidden != nil || errors.Is(err, registry.ErrSourceFailed) {
		return err
	}
	known := slices.DeleteFunc(s.finder.forCaller(ctx).sources.Names(),
		func(name string) bool { return !scopeOf(ctx).showsServer(name) })
	if !slices.Contains(known, path[0]) {
		return &sources.NoServerError{Name: path[0], Known: known}
	}
	return err
}

// isTool reports whether the name of a server is also that of a local tool or of a tool of that
// server. Each name is looked up once a run.
func (r *scriptRun) isTool(ctx context.Context, server string) (bool, error) {
	r.mu.Lock()
	taken, known := r.taken[server]
	r.mu.Unlock()
	if known {
		return taken, nil
	}
	local, err := r.finder.Local(ctx)
	if err != nil {
		return false, err
	}
	if t, err := local.Lookup(server); err == nil {
		taken = r.steps || scopeOf(ctx).showsTool(t)
	} else if own := server + "__" + server; r.finder.forCaller(ctx).sources.Of(own) != nil {
		f, err := r.finder.Find(ctx, own, Query{Scope: !r.steps})
		taken = err == nil && f.Tool.Name == server
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[server] = taken
	return taken, nil
}

// scriptCategory returns the category of a call that failed without a result.
func scriptCategory(err error) string {
	switch {
	case errors.Is(err, registry.ErrDenied):
		return "denied"
	case errors.Is(err, registry.ErrNeedsConfirmation):
		return "approval"
	case errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrSourceFailed):
		return "not_found"
	case errors.Is(err, exec.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return string(registry.ErrorTimeout)
	case errors.Is(err, context.Canceled):
		return string(registry.ErrorCancellation)
	}
	if _, ok := errors.AsType[*registry.ArgsError](err); ok {
		return string(registry.ErrorValidation)
	}
	return string(registry.ErrorExecution)
}

func (r *scriptRun) reply(result *registry.Result) script.Reply {
	out := script.Reply{Text: result.Text(), Structured: result.Structured}
	if !slices.ContainsFunc(result.Content, func(c registry.Content) bool { return c.Type != registry.ContentText }) {
		return out
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range result.Content {
		if c.Type == registry.ContentText {
			out.Parts = append(out.Parts, script.Part{Text: c.Text})
			continue
		}
		r.size += int64(len(c.Data) + len(c.Text))
		if most := r.finder.set.Limits.Result; most > 0 && r.size > most {
			return script.Reply{
				Err: fmt.Sprintf(
					"the images and other content of the script's calls exceed %d bytes (limits.result)", most),
				Category: string(registry.ErrorExecution),
			}
		}
		r.media = append(r.media, c)
		out.Parts = append(out.Parts, script.Part{Media: len(r.media),
			Kind: string(c.Type), MIMEType: c.MIMEType, URI: c.URI})
	}
	return out
}

func (r *scriptRun) Search(ctx context.Context, query string) script.Reply {
	whole, err := r.finder.All(ctx)
	var offered []*registry.Tool
	if err == nil {
		offered, err = r.offers.inScope(ctx, whole)
	}
	if err != nil {
		return script.Reply{Err: err.Error(), Category: string(registry.ErrorExecution)}
	}
	found, _, err := r.offers.Search(ctx, offered, query, scriptFound)
	if err != nil {
		return script.Reply{Err: err.Error(), Category: string(registry.ErrorExecution)}
	}
	list := []deferred.Described{}
	for _, f := range found {
		list = append(list, deferred.Describe(f.Tool.Name, &f.Tool.Definition))
	}
	return asReply(list)
}

// scriptFound is how many tools search finds.
const scriptFound = 10

func (r *scriptRun) Describe(ctx context.Context, name string) script.Reply {
	f, err := r.finder.Find(ctx, name, Query{Step: r.steps, Scope: !r.steps})
	if err != nil {
		return script.Reply{Err: err.Error(), Category: scriptCategory(err)}
	}
	return asReply(deferred.Describe(f.Tool.Name, &f.Tool.Definition))
}

func asReply(v any) script.Reply {
	raw, err := jsonx.Marshal(v)
	if err != nil {
		return script.Reply{Err: err.Error(), Category: string(registry.ErrorExecution)}
	}
	return script.Reply{Structured: raw}
}

// finish converts the end of a script to the outcome of the call that ran it.
func (r *scriptRun) finish(ctx context.Context, out script.Result, err error) (registry.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, failed := errors.AsType[*script.Failure](err)
	if failed && f.Kind == script.KindSyntax {
		return registry.Result{}, &settings.InputError{Err: f, Hint: "scripts are written in Starlark, a small Python"}
	}
	if failed && f.Kind == script.KindCall {
		cause := r.failed[f.Call]
		if open, ok := errors.AsType[*exec.NeedsConfirmation](cause); ok && open.Kept != nil {
			r.journal.Keep()
		} else {
			r.journal.Drop(ctx)
		}
		if _, reported := errors.AsType[*exec.ToolError](cause); cause != nil && !reported {
			return registry.Result{}, &exec.ScriptError{At: f.At, Done: r.done(), Lines: r.lines.String(), Err: cause}
		}
	} else if err == nil || failed {
		r.journal.Drop(ctx)
	}
	if err != nil && !failed {
		return registry.Result{}, err
	}
	var result registry.Result
	if r.lines.Len() > 0 {
		result.Content = append(result.Content, registry.TextContent(strings.TrimSuffix(r.lines.String(), "\n")))
	}
	if failed {
		result.IsError, result.ErrorCategory = true, registry.ErrorExecution
		text := f.Error()
		switch {
		case f.Limit == script.LimitTimeout:
			result.ErrorCategory = registry.ErrorTimeout
		case f.Kind == script.KindCall:
			if e, ok := errors.AsType[*exec.ToolError](r.failed[f.Call]); ok {
				result.ErrorCategory = cmp.Or(e.Category, registry.ErrorExecution)
			}
		}
		if f.Kind == script.KindLimit {
			text += r.limitText(f.Limit)
		}
		if done := r.done(); done != "" {
			text += "; done before: " + done
		}
		result.Content = append(result.Content, registry.TextContent(text))
		result.Summary = f.Error()
		return result, nil
	}
	for _, p := range out.Parts {
		if p.Media > 0 && p.Media <= len(r.media) {
			result.Content = append(result.Content, r.media[p.Media-1])
		} else {
			result.Content = append(result.Content, registry.TextContent(p.Text))
		}
	}
	if out.Object && len(out.Parts) == 1 {
		result.Structured = json.RawMessage(out.Parts[0].Text)
	}
	result.Summary = cmp.Or(r.done(), "no calls")
	return result, nil
}

// limitText describes a limit and names its setting.
func (r *scriptRun) limitText(limit string) string {
	l := r.limits()
	switch limit {
	case script.LimitSteps:
		return fmt.Sprintf(" of %d (scripts.steps)", l.Steps)
	case script.LimitCalls:
		return fmt.Sprintf(" of %d (scripts.calls)", l.Calls)
	case script.LimitMemory:
		return fmt.Sprintf(" of %d MiB (scripts.memory)", l.Memory>>20)
	case script.LimitTimeout:
		return fmt.Sprintf(" of %s (scripts.timeout)", l.Timeout)
	case script.LimitOutput:
		return fmt.Sprintf(" of %d bytes for printed lines", l.Output)
	case script.LimitResult:
		return fmt.Sprintf(" of %d bytes for the result", l.Result)
	}
	return ""
}

// done lists the calls that the script made: each tool with the number of its calls, in the order
// of first calls.
func (r *scriptRun) done() string {
	count := map[string]int{}
	var names []string
	for _, name := range r.results {
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	const most = 20
	var parts []string
	for i, name := range names {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more tools", len(names)-i))
			break
		}
		if n := count[name]; n > 1 {
			name += fmt.Sprintf(" (%d times)", n)
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}
