package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// Journal keeps the finished calls of a script, or of a model's response, that stopped at a
// question. When the script or response is given again, they are not repeated. A journal is kept
// for as long as the question. It is safe for concurrent use.
type Journal struct {
	reports *reports
	dir     *state.Dir // nil if nothing can be kept
	name    string     // of the file

	mu      sync.Mutex
	earlier map[string][]journalEntry // by key, in the order of the calls
	all     []func() journalEntry     // made only if they are kept
	size    int64                     // bytes of the results in all
	found   bool                      // the file is there
}

// maxJournal is how many bytes of results a journal has in memory.
const maxJournal = 64 << 20

// openJournal returns the journal that is kept under a name, with what an earlier run has finished.
// Without a state folder it keeps nothing.
func openJournal(folders *state.Folders, name string, reports *reports) *Journal {
	j := &Journal{reports: reports, name: name, earlier: map[string][]journalEntry{}}
	folder, err := folders.State()
	if err != nil {
		return j
	}
	if j.dir, err = state.OpenDir(folder.Path + "/scripts"); err != nil {
		return j
	}
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

type journalFile struct {
	Expires time.Time      `json:"expires"`
	Calls   []journalEntry `json:"calls"`
}

// journalEntry is a finished call, or a denied one with the reason.
type journalEntry struct {
	Key string `json:"key"`
	registry.StoredResult
	Refused *exec.Denied `json:"denied,omitempty"` // in place of a result
}

func callKey(name string, params json.RawMessage) string {
	return hashOf(name, jsonx.Canonical(params))
}

// Left returns how many equal calls the earlier run finished and this run did not reach yet.
func (j *Journal) Left(name string, params json.RawMessage) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.earlier[callKey(name, params)])
}

// Once returns the outcome of an equal call of the earlier run, or else makes the call. The call
// also reports whether it may be repeated if its result is too large to keep.
func (j *Journal) Once(name string, params json.RawMessage,
	call func() (result registry.Result, again bool, err error)) (registry.Result, error) {
	if e := j.take(name, params); e != nil {
		if e.Refused != nil {
			return registry.Result{}, e.Refused
		}
		return e.Result(), nil
	}
	result, again, err := call()
	denied, _ := errors.AsType[*exec.Denied](err)
	if err != nil && (denied == nil || denied.Origin != exec.OriginPerson) {
		return result, err // it is repeated
	}
	kept := result
	kept.Content = slices.Clone(result.Content)
	size := int64(len(result.Structured))
	for _, c := range result.Content {
		size += int64(len(c.Text) + len(c.Data))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.size+size <= maxJournal:
		j.size += size
	case again:
		return result, err
	default:
		const why = "the call was made before the question, but its result was too large to be kept"
		kept = registry.Result{Content: []registry.Content{registry.TextContent(why)}, Summary: why,
			IsError: true, ErrorCategory: registry.ErrorExecution}
	}
	j.all = append(j.all, func() journalEntry { return journalEntry{callKey(name, params), kept.Stored(), denied} })
	return result, err
}

// take returns the next entry of an equal call of the earlier run; nil if there is none.
func (j *Journal) take(name string, params json.RawMessage) *journalEntry {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.earlier) == 0 {
		return nil
	}
	key := callKey(name, params)
	earlier := j.earlier[key]
	if len(earlier) == 0 {
		return nil
	}
	j.earlier[key] = earlier[1:]
	j.all = append(j.all, func() journalEntry { return earlier[0] })
	return &earlier[0]
}

// Keep stores the finished calls for as long as questions are kept.
func (j *Journal) Keep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.dir == nil {
		return
	}
	data, err := j.encode()
	if err == nil {
		// What cannot be removed now is removed next time.
		_ = j.dir.Sweep(time.Now(), state.Bounds{Age: policy.QuestionLifetime, Files: 100, Bytes: 256 << 20})
		err = j.dir.Put(j.name, data)
	}
	if err != nil {
		j.reports.add(registry.Warning("script_not_kept", "",
			"the finished calls cannot be kept, so all are made again: "+err.Error(), ""))
	}
}

// encode encodes the journal: the calls of this run, then those of the earlier run that this one
// did not reach.
func (j *Journal) encode() ([]byte, error) {
	f := journalFile{Expires: time.Now().Add(policy.QuestionLifetime)}
	for _, entry := range j.all {
		f.Calls = append(f.Calls, entry())
	}
	for _, rest := range j.earlier {
		f.Calls = append(f.Calls, rest...)
	}
	return json.Marshal(f)
}

// Drop forgets what was kept.
func (j *Journal) Drop(ctx context.Context) {
	if j.found {
		_ = j.dir.Remove(ctx, j.name) // it expires
	}
}

// hashOf returns the hash of values, which JSON can encode.
func hashOf(values ...any) string {
	data, _ := json.Marshal(values)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
