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

// A write replaces the list, and yet loses nothing of another writer's. Both
// hold because a write takes away only what its caller has seen: an entry that
// came or was changed behind the revision that the caller saw last stays. So a
// single agent drops what it leaves out, and of two that begin with the same
// list neither loses the other's entries.
//
// Two runs at the same time cannot have seen each other's entries, whoever
// their caller is. Such a run is told by its beginning: it began before the
// last revision was written. A row of writes each of which began so is a burst,
// and for a write that joins one, what the caller saw ends where it began. Where
// the writes come slower than they are done, one of them may see the end of the
// one before, so that a burst of several goes on for a moment.

// list is what the file holds. The names are there for a person who looks.
// A revision is the time it was written, in microseconds since 1970, so that it
// grows even where a list was lost and begun anew.
type list struct {
	Workspace string  `json:"workspace"`
	Session   string  `json:"session,omitempty"`
	Revision  int64   `json:"revision"`
	Burst     int64   `json:"burst"`  // the revision that the present burst began with
	Writes    int     `json:"writes"` // of the burst
	Todos     []entry `json:"todos"`
	callers
}

// entry is an entry with the revisions that brought it and gave it its
// present form.
type entry struct {
	registry.Todo
	Added   int64         `json:"added"`
	Changed int64         `json:"changed"`
	Former  []formerEntry `json:"former,omitempty"` // oldest first
}

// formerEntry is a form that an entry had from a revision on.
type formerEntry struct {
	Since int64  `json:"since"`
	Sum   string `json:"sum"`
}

// burstGrace is how long after its last write a burst of several writes may be
// joined, in microseconds.
const burstGrace = 1_000_000

// maxFormer bounds the former forms of an entry that are remembered.
const maxFormer = 16

// formerly reports whether t is the form that the entry had at a revision.
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
		return "" // strings alone: it cannot fail
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

// replacement is a write: the list that is to be, who writes it, and in
// microseconds since 1970 when the write began and when it is made.
type replacement struct {
	todos      []registry.Todo
	caller     string
	began, now int64
}

// merged is what a write made of a list.
type merged struct {
	after   list
	dropped []registry.Todo // entries taken out
	kept    []string        // ids of entries left out that stay all the same
	stood   []string        // ids of entries that another writer's form stays of
}

var errTooMany = errors.New("the todo list is too long")

// merge makes the next revision. It fails where the list would grow too long.
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

// joins reports whether a write is one of the burst.
func (f *list) joins(c replacement) bool {
	last := max(f.Revision, f.Written)
	if last > c.now {
		return false // the clock was put back, which tells nothing
	}
	if f.Writes > 1 {
		last += burstGrace
	}
	return c.began <= last
}

// take puts an entry of the new list in. old is its present form, nil if there
// is none.
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
