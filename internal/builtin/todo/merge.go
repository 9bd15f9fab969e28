package todo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/toolreg/toolreg/internal/registry"
)

// A write replaces the list and yet loses nothing from other writers. Both hold
// because a write removes only what its caller has seen: an entry that was
// added or changed after the revision that the caller saw last is kept. So a
// single agent drops what it leaves out, and of two that start with the same
// list neither loses the other's entries.
//
// Two concurrent runs cannot have seen each other's entries, even with the same
// caller. Such a run is recognized by its start: it started before the last
// revision was written. A series of such writes is a burst, and for a write that
// joins one, what the caller has seen ends where the burst began. If writes
// arrive more slowly than they complete, one of them may start just after the
// previous one ended, so a burst of several can be joined for a moment longer.

// list is what the file holds. The names are for people who look at it. A
// revision is the time it was written, in microseconds since 1970, so that it
// grows even if a list is lost and started again.
type list struct {
	Workspace string  `json:"workspace"`
	Session   string  `json:"session,omitempty"`
	Revision  int64   `json:"revision"`
	Burst     int64   `json:"burst"`  // the revision with which the current burst began
	Writes    int     `json:"writes"` // of the burst
	Todos     []entry `json:"todos"`
	callers
}

// entry is an entry with the revisions that added it and last changed it.
type entry struct {
	registry.Todo
	Added   int64         `json:"added"`
	Changed int64         `json:"changed"`
	Former  []formerEntry `json:"former,omitempty"` // oldest first
}

// formerEntry is the form of an entry since a revision.
type formerEntry struct {
	Since int64  `json:"since"`
	Sum   string `json:"sum"`
}

// burstGrace is how long after its last write a burst of several writes may be
// joined, in microseconds.
const burstGrace = 1_000_000

// maxFormer bounds the former forms of an entry that are remembered.
const maxFormer = 16

// formerly reports whether the entry had the form t at a revision.
func (s *entry) formerly(t registry.Todo, revision int64) bool {
	sum := ""
	for _, f := range s.Former {
		if f.Since <= revision {
			sum = f.Sum
		}
	}
	return sum != "" && sum == sumOf(t)
}

func sumOf(t registry.Todo) string {
	text, err := json.Marshal(t)
	if err != nil {
		return "" // only strings: it cannot fail
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func (f *list) todos() []registry.Todo {
	out := make([]registry.Todo, len(f.Todos))
	for i := range f.Todos {
		out[i] = f.Todos[i].Todo
	}
	return out
}

// replacement is a write: the new list, its writer, and when the write started
// and when it is made, in microseconds since 1970.
type replacement struct {
	todos      []registry.Todo
	caller     string
	began, now int64
}

// merged is the result of a write.
type merged struct {
	after   list
	dropped []registry.Todo // removed entries
	kept    []string        // ids of omitted entries that are kept
	stood   []string        // ids of entries that keep another writer's form
}

var errTooMany = errors.New("the todo list is too long")

// merge computes the next revision. It fails if the list would become too long.
func (f *list) merge(c replacement) (*merged, error) {
	m := &merged{after: list{
		Workspace: f.Workspace, Session: f.Session, Revision: max(c.now, f.Revision+1), callers: f.callers,
	}}
	base := f.by(c.caller)
	if f.joins(c) {
		m.after.Burst, m.after.Writes = f.Burst, f.Writes+1
		base = min(base, f.Burst-1)
	} else {
		m.after.Burst, m.after.Writes = m.after.Revision, 1
	}
	before := make(map[string]*entry, len(f.Todos))
	for i := range f.Todos {
		before[f.Todos[i].ID] = &f.Todos[i]
	}
	for _, t := range c.todos {
		m.take(before[t.ID], t, base)
		delete(before, t.ID)
	}
	for i := range f.Todos {
		old := &f.Todos[i]
		switch {
		case before[old.ID] == nil: // taken already
		case old.Changed > base:
			m.kept = append(m.kept, old.ID)
			m.after.Todos = append(m.after.Todos, *old)
		default:
			m.dropped = append(m.dropped, old.Todo)
		}
	}
	if n := len(m.after.Todos); n > maxTodos {
		return nil, fmt.Errorf("%w: it would have %d entries, %d of them from another writer; the maximum is %d; read it and write a shorter one", errTooMany, n, len(m.kept), maxTodos)
	}
	m.after.Seen = maps.Clone(f.Seen)
	m.after.mark(c.caller, m.after.Revision)
	return m, nil
}

// joins reports whether a write belongs to the burst.
func (f *list) joins(c replacement) bool {
	last := max(f.Revision, f.Written)
	if last > c.now {
		return false // the clock was set back, so this says nothing
	}
	if f.Writes > 1 {
		last += burstGrace
	}
	return c.began <= last
}

// take adds an entry of the new list. old is its current form, nil if there is
// none.
func (m *merged) take(old *entry, t registry.Todo, base int64) {
	next := entry{Todo: t, Added: m.after.Revision, Changed: m.after.Revision}
	switch {
	case old == nil:
	case old.Todo == t:
		next = *old
	case old.Changed > base && old.formerly(t, base): // the caller did not touch it
		next = *old
		m.stood = append(m.stood, t.ID)
	default:
		next.Added = old.Added
		next.Former = append(next.Former, old.Former...)
		next.Former = append(next.Former, formerEntry{Since: old.Changed, Sum: sumOf(old.Todo)})
		next.Former = next.Former[max(0, len(next.Former)-maxFormer):]
	}
	m.after.Todos = append(m.after.Todos, next)
}
