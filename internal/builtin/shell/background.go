package shell

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// background starts the command and returns its id without waiting for it.
func (s *shellTool) background(ctx context.Context, c *shellCall,
	confine *process.Confinement, argv []string, dir string) (registry.Result, error) {
	store, err := newBackgroundStore(s.opts)
	if err != nil {
		return registry.Result{}, err
	}
	program, err := (process.Spec{Argv: argv, Dir: dir, Env: s.opts.Env, NotFrom: c.root}).Program()
	if err != nil {
		return registry.Result{}, fmt.Errorf("running a shell command: %w", err)
	}
	argv[0] = program
	r, err := s.detached(ctx, store, c, confine, argv, dir)
	if err != nil {
		return registry.Result{}, fmt.Errorf("running a shell command in the background: %w", err)
	}
	res := registry.TextResult(fmt.Sprintf(
		"Started in the background with id %q (PID %d). The process tool shows its output (action log), waits for its end (wait) or stops it (kill).",
		r.ID, r.PID))
	res.Summary = "started in the background with id " + r.ID
	return res, nil
}

func (s *shellTool) detached(ctx context.Context, store *backgroundStore, c *shellCall,
	confine *process.Confinement, argv []string, dir string) (_ *backgroundRecord, err error) {
	id, log, err := store.create()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	sandbox := ""
	if confine != nil {
		confine.Background = true
		end, err := store.startAlone()
		if err != nil {
			store.remove(id)
			return nil, fmt.Errorf("recording background processes: %w", err)
		}
		defer end()
		desc := confined{Profile: confine.Profile, Workspace: c.root, Logs: confine.Logs, Private: confine.Private}
		if confine.HasLoopback() {
			var namespace *os.File
			if namespace, desc.Join = store.loopback(scopeOf(ctx, c.root)); namespace != nil {
				_ = namespace.Close() // the keeper asks for it again
			}
			desc.Share = store.path(id, "net")
		}
		if sandbox, err = store.saveConfined(id, desc); err != nil {
			store.remove(id)
			return nil, err
		}
	}
	keeper := append(slices.Clone(s.opts.Keeper), store.path(id, "log"),
		store.path(id, "exit"), strconv.FormatInt(keptOutput(s.opts), 10), sandbox)
	r := &backgroundRecord{
		ID: id, Workspace: c.root, Token: caller.Token(ctx), Command: c.Command, Directory: c.dir,
		Started: time.Now().UTC(), Mark: rand.Text(),
	}
	env := append(slices.Clone(s.opts.Env), process.MarkVariable+"="+r.Mark)
	if err := detach(ctx, r, append(keeper, argv...), dir, env, log); err != nil {
		store.remove(id)
		return nil, err
	}
	if err := store.save(r); err != nil {
		_ = store.end(r, time.Sleep) // a process without a record must not keep running
		store.remove(id)
		return nil, err
	}
	return r, nil
}
