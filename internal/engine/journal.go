package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// Journal has the finished calls of a script, or of a response of a model, that ended at a
// question, so that it goes on when it is given again. It is kept as long as the question. It
// is safe for concurrent use.
type Journal struct {
	*run
	dir  *state.Dir // nil: nothing is kept
	name string     // of the file

	mu      sync.Mutex
	earlier map[string][]journalEntry // by key, in the order of the calls
	all     []journalEntry
	found   bool // the file is there
}

type journalFile struct {
	Expires time.Time      `json:"expires"`
	Calls   []journalEntry `json:"calls"`
}

// journalEntry is a finished call. A call that was denied has the reason.
type journalEntry struct {
	Key        string                 `json:"key"`
	Content    json.RawMessage        `json:"content,omitempty"`
	Structured json.RawMessage        `json:"structured,omitempty"`
	IsError    bool                   `json:"isError,omitempty"`
	Category   registry.ErrorCategory `json:"category,omitempty"`
	Summary    string                 `json:"summary,omitempty"`
	Denied     *exec.Denied           `json:"denied,omitempty"`
}

// newEntry returns the entry of a result.
func newEntry(key string, r *registry.Result) (journalEntry, error) {
	content, err := json.Marshal(append([]registry.Content{}, r.Content...))
	return journalEntry{Key: key, Content: content, Structured: r.Structured, IsError: r.IsError, Category: r.ErrorCategory, Summary: r.Summary}, err
}

// result returns the result of an entry.
func (e *journalEntry) result() (registry.Result, error) {
	content, err := registry.ParseContent(e.Content)
	return registry.Result{Content: content, Structured: e.Structured, IsError: e.IsError, ErrorCategory: e.Category, Summary: e.Summary}, err
}

// openJournal returns the journal of what the parts identify, for the caller.
func (r *run) openJournal(ctx context.Context, parts ...any) *Journal {
	j := &Journal{run: r, earlier: map[string][]journalEntry{}}
	folder, err := r.deps.Folders.State()
	if err != nil {
		return j
	}
	if j.dir, err = state.OpenDir(folder.Path + "/scripts"); err != nil {
		return j
	}
	j.name = digest(append(parts, r.set.Workspace, r.set.ProjectRoot, caller.Name(ctx))...) + ".json"
	data, err := j.dir.Read(j.name)
	var f journalFile
	if err != nil || json.Unmarshal(data, &f) != nil || time.Now().After(f.Expires) {
		return j
	}
	j.found = true
	for _, e := range f.Calls {
		j.earlier[e.Key] = append(j.earlier[e.Key], e)
	}
	return j
}

// Journal returns the journal of a response of a model with these calls.
func (c *Calls) Journal(ctx context.Context, calls []provider.Call) *Journal {
	ids := make([]json.RawMessage, len(calls))
	for i := range calls {
		ids[i] = calls[i].ID()
	}
	return c.gate.openJournal(ctx, "response", calls, ids)
}

func callKey(name string, params json.RawMessage) string {
	return digest(name, jsonx.Canonical(params))
}

// Left returns how many equal calls the earlier run finished and this run did not reach yet.
func (j *Journal) Left(name string, params json.RawMessage) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.earlier[callKey(name, params)])
}

// Once returns the outcome of an equal call of the earlier run, or makes the call.
func (j *Journal) Once(name string, params json.RawMessage, call func() (registry.Result, error)) (registry.Result, error) {
	key := callKey(name, params)
	j.mu.Lock()
	if earlier := j.earlier[key]; len(earlier) > 0 {
		j.earlier[key] = earlier[1:]
		j.all = append(j.all, earlier[0])
		j.mu.Unlock()
		if earlier[0].Denied != nil {
			return registry.Result{}, earlier[0].Denied
		}
		return earlier[0].result()
	}
	j.mu.Unlock()
	result, err := call()
	e := journalEntry{Key: key}
	if err == nil {
		if e, err = newEntry(key, &result); err != nil {
			return result, err
		}
	} else if denied, ok := asPersonsNo(err); ok {
		e.Denied = denied
	} else {
		return result, err // it is made again
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, e)
	return result, err
}

// Keep stores the finished calls for as long as questions are kept.
func (j *Journal) Keep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, rest := range j.earlier { // calls that this run did not reach again
		j.all = append(j.all, rest...)
	}
	if j.dir == nil {
		return
	}
	data, err := json.Marshal(journalFile{time.Now().Add(policy.QuestionLifetime), j.all})
	if err == nil {
		_ = j.dir.Sweep(time.Now(), state.Bounds{Age: policy.QuestionLifetime, Files: 100, Bytes: 256 << 20}) // what stays is swept next time
		err = j.dir.Put(j.name, data)
	}
	if err != nil {
		j.warn("script_not_kept", "", "the finished calls cannot be kept, so all are made again: "+err.Error(), "")
	}
}

// Drop forgets what was kept.
func (j *Journal) Drop(ctx context.Context) {
	if j.found {
		_ = j.dir.Remove(ctx, j.name) // it expires
	}
}

// asPersonsNo returns the denial of a call that a person said no to.
func asPersonsNo(err error) (*exec.Denied, bool) {
	denied, ok := errors.AsType[*exec.Denied](err)
	return denied, ok && denied.Origin == exec.OriginPerson
}
