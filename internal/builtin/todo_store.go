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

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// todoList is the list of one workspace and session, kept in a state file.
type todoList struct {
	opts      *Options
	workspace *workspace
}

// todoFile is what the file holds. The names are there for a person who looks.
type todoFile struct {
	Workspace string          `json:"workspace"`
	Session   string          `json:"session,omitempty"`
	Todos     []registry.Todo `json:"todos"`
}

// file returns the folder and the name of the list's file.
func (l *todoList) file() (*state.Dir, string, error) {
	if l.opts.StateDir == "" {
		return nil, "", fmt.Errorf("%w: there is no state folder for todo lists", state.ErrUnavailable)
	}
	if _, err := l.workspace.open(); err != nil {
		return nil, "", err
	}
	dir, err := state.OpenDir(filepath.Join(l.opts.StateDir, todoFolder))
	if err != nil {
		return nil, "", fmt.Errorf("opening todo lists: %w", err)
	}
	sum := sha256.Sum256([]byte(l.workspace.real + "\x00" + l.opts.Session))
	return dir, fmt.Sprintf("%x.json", sum[:16]), nil
}

var errDamagedTodos = errors.New("the todo list is damaged")

func decodeTodos(data []byte) ([]registry.Todo, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errDamagedTodos
	}
	var f todoFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamagedTodos, err)
	}
	return f.Todos, nil
}

// peek reads the list. An absent one is empty; a damaged one wraps
// errDamagedTodos and stays where it is.
func (l *todoList) peek() ([]registry.Todo, error) {
	dir, name, err := l.file()
	if err != nil {
		return nil, err
	}
	data, err := dir.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the todo list: %w", err)
	}
	return decodeTodos(data)
}

// load reads the list. A damaged file is set aside, and aside names where.
func (l *todoList) load(ctx context.Context) (todos []registry.Todo, aside string, err error) {
	todos, err = l.peek()
	if errors.Is(err, errDamagedTodos) {
		aside, err = l.setAside(ctx)
	}
	return todos, aside, err
}

// setAside moves a damaged file out of the way. Another run may have been
// faster.
func (l *todoList) setAside(ctx context.Context) (to string, err error) {
	dir, name, err := l.file()
	if err != nil {
		return "", err
	}
	to, err = dir.SetAside(ctx, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("setting a damaged todo list aside: %w", err)
	}
	return to, nil
}

// replace writes the list and returns the one before.
func (l *todoList) replace(ctx context.Context, todos []registry.Todo) (before []registry.Todo, aside string, err error) {
	dir, name, err := l.file()
	if err != nil {
		return nil, "", err
	}
	next, err := json.MarshalIndent(todoFile{Workspace: l.workspace.real, Session: l.opts.Session, Todos: todos}, "", "  ")
	if err != nil {
		return nil, "", err
	}
	change := func(old []byte) (_ []byte, err error) {
		if old != nil {
			before, err = decodeTodos(old)
		}
		return append(next, '\n'), err
	}
	err = dir.Update(ctx, name, change)
	if !errors.Is(err, errDamagedTodos) {
		return before, "", err
	}
	if aside, err = l.setAside(ctx); err != nil {
		return nil, "", err
	}
	return before, aside, dir.Update(ctx, name, change)
}
