package builtin

import (
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// background starts the command and returns its id at once.
func (s *shellTool) background(c *shellCall, argv []string, dir string) (registry.Result, error) {
	store, err := newBackgroundStore(s.opts)
	if err != nil {
		return registry.Result{}, err
	}
	program, err := (process.Spec{Argv: argv, Dir: dir, Env: s.opts.Env}).Program()
	if err != nil {
		return registry.Result{}, fmt.Errorf("running a shell command: %w", err)
	}
	argv[0] = program
	r, err := s.detached(store, c, argv, dir)
	if err != nil {
		return registry.Result{}, fmt.Errorf("running a shell command in the background: %w", err)
	}
	res := registry.TextResult(fmt.Sprintf("Started in the background with id %q (PID %d). The process tool shows its output (action log), waits for its end (wait) or stops it (kill).",
		r.ID, r.PID))
	res.Summary = "started in the background with id " + r.ID
	return res, nil
}

func (s *shellTool) detached(store *backgroundStore, c *shellCall, argv []string, dir string) (_ *backgroundRecord, err error) {
	id, log, err := store.create()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r := &backgroundRecord{ID: id, Workspace: s.workspace.real, Command: c.Command, Directory: c.dir, Started: time.Now().UTC()}
	if err := detach(r, argv, dir, s.opts.Env, log, store.path(id, "exit")); err != nil {
		store.remove(id)
		return nil, err
	}
	if err := store.save(r); err != nil {
		_ = store.end(r, time.Sleep) // a process that nobody knows of must not stay
		store.remove(id)
		return nil, err
	}
	return r, nil
}
