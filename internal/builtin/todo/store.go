package todo

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

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// store is the list of one workspace and session, kept in a state file.
type store struct {
	opts      *Options
	workspace *workspace.Dir

	first sync.Once
}

// location is where a list is stored.
type location struct {
	workspace string // its path
	dir       *state.Dir
	list      string // name of the file
}

func (l *store) place() (*location, error) {
	if l.opts.StateDir == "" {
		return nil, fmt.Errorf("%w: there is no state folder for todo lists", state.ErrUnavailable)
	}
	path, err := l.workspace.Path()
	if err != nil {
		return nil, err
	}
	dir, err := state.OpenDir(filepath.Join(l.opts.StateDir, folder))
	if err != nil {
		return nil, fmt.Errorf("opening todo lists: %w", err)
	}
	sum := sha256.Sum256([]byte(path + "\x00" + l.opts.Session))
	name := fmt.Sprintf("%x", sum[:16])
	return &location{workspace: path, dir: dir, list: name + ".json"}, nil
}

// began is the latest time at which the params of a call were fixed: their
// author cannot know what others have written since. For the first call of a
// run that is the start of the run, since a person may have been asked in
// between.
func (l *store) began() time.Time {
	at := time.Now()
	l.first.Do(func() {
		if !l.opts.Began.IsZero() {
			at = startOfRun(l.opts.Began)
		}
	})
	return at
}

var errDamaged = errors.New("the todo list is damaged")

func decodeList(data []byte) (*list, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errDamaged
	}
	f := &list{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return f, nil
}

// peek reads the list. A missing list is empty; for a damaged one the error
// wraps errDamaged and the file stays in place.
func (p *location) peek() (*list, error) {
	data, err := p.dir.Read(p.list)
	if errors.Is(err, fs.ErrNotExist) {
		return &list{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the todo list: %w", err)
	}
	return decodeList(data)
}

// load reads the list for a caller and records that the caller has seen it. A
// damaged file is set aside, and aside names its new path.
func (l *store) load(ctx context.Context) (f *list, aside string, err error) {
	p, err := l.place()
	if err != nil {
		return nil, "", err
	}
	f, err = p.peek()
	if errors.Is(err, errDamaged) {
		aside, err = p.setAside(ctx)
		f = &list{}
	}
	if caller := l.opts.caller(); err == nil && f.by(caller) < f.Revision {
		// If that cannot be stored, the caller counts as not having seen it, and
		// loses nothing.
		_ = p.dir.Update(ctx, p.list, changing(func(now *list) { now.mark(caller, f.Revision) }))
	}
	return f, aside, err
}

// changing is a change to the file of an existing list.
func changing(change func(*list)) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		f, err := decodeList(old)
		if err != nil {
			return nil, err
		}
		change(f)
		return f.encode()
	}
}

func (f *list) encode() ([]byte, error) {
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}

// setAside moves a damaged list out of the way, if it is still damaged.
func (p *location) setAside(ctx context.Context) (to string, err error) {
	to, err = p.dir.UpdateOrSetAside(ctx, p.list, func(old []byte) ([]byte, error) {
		if _, err := decodeList(old); old != nil && err != nil {
			return nil, state.ErrDamaged
		}
		return nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("setting a damaged todo list aside: %w", err)
	}
	return to, nil
}

// change is a write of todos by the caller.
func (l *store) change(todos []registry.Todo, began time.Time) replacement {
	return replacement{todos: todos, caller: l.opts.caller(), began: began.UnixMicro(), now: time.Now().UnixMicro()}
}

// foresee returns what writing todos would do.
func (l *store) foresee(todos []registry.Todo) (*merged, error) {
	p, err := l.place()
	if err != nil {
		return nil, err
	}
	before, err := p.peek()
	if err != nil {
		return nil, err
	}
	return before.merge(l.change(todos, time.Now()))
}

// replace merges todos into the list and writes it.
func (l *store) replace(ctx context.Context, todos []registry.Todo) (m *merged, aside string, err error) {
	began := l.began()
	p, err := l.place()
	if err != nil {
		return nil, "", err
	}
	change := func(old []byte) ([]byte, error) {
		before := &list{}
		if old != nil {
			if before, err = decodeList(old); err != nil {
				return nil, state.ErrDamaged
			}
		}
		if m, err = before.merge(l.change(todos, began)); err != nil {
			return nil, err
		}
		m.after.Workspace, m.after.Session = p.workspace, l.opts.Session
		return m.after.encode()
	}
	aside, err = p.dir.UpdateOrSetAside(ctx, p.list, change)
	if err != nil {
		return nil, "", err
	}
	// If that cannot be stored, another run may count as having started later.
	_ = p.dir.Update(ctx, p.list, changing(func(now *list) { now.Written = max(now.Written, time.Now().UnixMicro()) }))
	return m, aside, nil
}
