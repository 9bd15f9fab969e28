package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// todoList is the list of one workspace and session, kept in a state file.
type todoList struct {
	opts      *Options
	workspace *workspace

	first sync.Once
}

// todoPlace is where a list is kept: the list itself, and beside it who has
// seen which revision of it.
type todoPlace struct {
	dir           *state.Dir
	list, callers string
}

func (l *todoList) place() (*todoPlace, error) {
	if l.opts.StateDir == "" {
		return nil, fmt.Errorf("%w: there is no state folder for todo lists", state.ErrUnavailable)
	}
	if _, err := l.workspace.open(); err != nil {
		return nil, err
	}
	dir, err := state.OpenDir(filepath.Join(l.opts.StateDir, todoFolder))
	if err != nil {
		return nil, fmt.Errorf("opening todo lists: %w", err)
	}
	sum := sha256.Sum256([]byte(l.workspace.real + "\x00" + l.opts.Session))
	name := fmt.Sprintf("%x", sum[:16])
	return &todoPlace{dir: dir, list: name + ".json", callers: name + ".callers"}, nil
}

// began is when the params of a call were fixed, at the latest: what others
// have written since cannot be known to whoever made them. For the first call
// of a run that is the start of the run, since a person may have been asked.
func (l *todoList) began() time.Time {
	at := time.Now()
	l.first.Do(func() {
		if !l.opts.Began.IsZero() {
			at = startOfRun(l.opts.Began)
		}
	})
	return at
}

var errDamagedTodos = errors.New("the todo list is damaged")

func decodeTodos(data []byte) (*todoFile, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errDamagedTodos
	}
	f := &todoFile{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamagedTodos, err)
	}
	return f, nil
}

// peek reads the list. An absent one is empty; a damaged one wraps
// errDamagedTodos and stays where it is.
func (p *todoPlace) peek() (*todoFile, error) {
	data, err := p.dir.Read(p.list)
	if errors.Is(err, fs.ErrNotExist) {
		return &todoFile{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the todo list: %w", err)
	}
	return decodeTodos(data)
}

// load reads the list for a caller, who has seen it from then on. A damaged
// file is set aside, and aside names where.
func (l *todoList) load(ctx context.Context) (f *todoFile, aside string, err error) {
	p, err := l.place()
	if err != nil {
		return nil, "", err
	}
	f, err = p.peek()
	if errors.Is(err, errDamagedTodos) {
		aside, err = p.setAside(ctx)
		f = &todoFile{}
	}
	if err == nil {
		p.mark(ctx, l.caller(), f.Revision, false)
	}
	return f, aside, err
}

// setAside moves a damaged file out of the way. Another run may have been
// faster.
func (p *todoPlace) setAside(ctx context.Context) (to string, err error) {
	to, err = p.dir.SetAside(ctx, p.list)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("setting a damaged todo list aside: %w", err)
	}
	return to, nil
}

// change says what a write would make of the list as it is now.
func (l *todoList) change(p *todoPlace, todos []registry.Todo, began time.Time) todoChange {
	known := p.known()
	return todoChange{todos: todos, seen: known.by(l.caller()), written: known.Written, began: began.UnixMicro(), now: time.Now().UnixMicro()}
}

// foresee says what writing todos would do.
func (l *todoList) foresee(todos []registry.Todo) (*todoMerge, error) {
	p, err := l.place()
	if err != nil {
		return nil, err
	}
	before, err := p.peek()
	if err != nil {
		return nil, err
	}
	return before.merge(l.change(p, todos, time.Now()))
}

// replace merges todos into the list and writes it.
func (l *todoList) replace(ctx context.Context, todos []registry.Todo) (m *todoMerge, aside string, err error) {
	began := l.began()
	p, err := l.place()
	if err != nil {
		return nil, "", err
	}
	change := func(old []byte) ([]byte, error) {
		before := &todoFile{}
		if old != nil {
			if before, err = decodeTodos(old); err != nil {
				return nil, err
			}
		}
		if m, err = before.merge(l.change(p, todos, began)); err != nil {
			return nil, err
		}
		m.after.Workspace, m.after.Session = l.workspace.real, l.opts.Session
		next, err := json.MarshalIndent(m.after, "", "  ")
		return append(next, '\n'), err
	}
	err = p.dir.Update(ctx, p.list, change)
	if errors.Is(err, errDamagedTodos) {
		if aside, err = p.setAside(ctx); err == nil {
			err = p.dir.Update(ctx, p.list, change)
		}
	}
	if err != nil {
		return nil, "", err
	}
	p.mark(ctx, l.caller(), m.after.Revision, true)
	return m, aside, nil
}
