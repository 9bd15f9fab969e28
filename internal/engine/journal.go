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
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// journal has the finished calls of a script that ended at a question, so that the script
// goes on when it is given again. It is kept as long as the question. It is safe for
// concurrent use.
type journal struct {
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

// openJournal returns the journal of a script, its params and its caller.
func (s *Scripts) openJournal(ctx context.Context, hash string, params json.RawMessage) *journal {
	j := &journal{run: s.run, earlier: map[string][]journalEntry{}}
	folder, err := s.deps.Folders.State()
	if err != nil {
		return j
	}
	if j.dir, err = state.OpenDir(folder.Path + "/scripts"); err != nil {
		return j
	}
	j.name = digest(hash, jsonx.Canonical(params), s.set.Workspace, s.set.ProjectRoot, caller.Name(ctx)) + ".json"
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

// once returns the outcome of an equal call of the earlier run, or makes the call.
func (j *journal) once(name string, params json.RawMessage, call func() (registry.Result, error)) (registry.Result, error) {
	key := digest(name, jsonx.Canonical(params))
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

// keep stores the finished calls.
func (j *journal) keep(ctx context.Context, until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, rest := range j.earlier { // calls that this run did not reach again
		j.all = append(j.all, rest...)
	}
	if j.dir == nil {
		return
	}
	data, err := json.Marshal(journalFile{until, j.all})
	if err == nil {
		_ = j.dir.Sweep(time.Now(), state.Bounds{Age: 24 * time.Hour, Files: 100, Bytes: 256 << 20}) // what stays is swept next time
		err = j.dir.Put(j.name, data)
	}
	if err != nil {
		j.warn("script_not_kept", "", "the finished calls of the script cannot be kept, so it begins anew when it is given again: "+err.Error(), "")
	}
}

// drop forgets what was kept.
func (j *journal) drop(ctx context.Context) {
	if j.found {
		_ = j.dir.Remove(ctx, j.name) // it expires
	}
}

// asPersonsNo returns the denial of a call that a person said no to.
func asPersonsNo(err error) (*exec.Denied, bool) {
	denied, ok := errors.AsType[*exec.Denied](err)
	return denied, ok && denied.Origin == exec.OriginPerson
}
