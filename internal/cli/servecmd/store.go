package servecmd

import (
	"context"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/store"
)

// awaitStore waits until the store can be used, and reports from then on when
// it goes away and comes back. It returns false if a signal ends the process before.
func awaitStore(ctx context.Context, e *cli.Env, shared *store.Store) bool {
	hint := "until it can be, this process waits and serves nothing"
	shared.Changed = func(err error) {
		if err == nil {
			e.IO.Log.Warn("serve.store can be used again")
			return
		}
		e.IO.Warn(registry.Diagnostic{
			Severity: registry.SeverityWarning, Code: "store_away",
			Message: "serve.store cannot be used: " + err.Error(), Hint: hint,
		})
	}
	if shared.Wait(ctx) != nil {
		return false
	}
	hint = "until it is back, calls that need an answer or are limited are refused"
	return true
}

// questions returns the options for questions that carry a state, as newer protocol
// revisions require.
func questions(ctx context.Context, e *cli.Env, from *engine.Session) (question.Options, error) {
	key, err := stateKey(ctx, from)
	if err != nil {
		return question.Options{}, err
	}
	q := question.Options{Key: key, Warn: func(err error) {
		e.IO.Warn(registry.Diagnostic{
			Severity: registry.SeverityWarning, Code: "answers_not_shared",
			Message: "other processes do not learn which questions were answered here, so an answer that a client sends twice may be accepted twice: " + err.Error(),
		})
	}}
	if q.Store = from.Store; q.Store != nil {
		return q, nil
	}
	dir, err := e.Config.Folders.State()
	if err == nil {
		q.Answered, err = state.OpenDir(filepath.Join(dir.Path, "answered"))
	}
	if err != nil && key != "" {
		q.Warn(err)
	}
	return q, nil
}

// stateKey returns the value of serve.stateKey.
func stateKey(ctx context.Context, from *engine.Session) (string, error) {
	key, err := from.Expander.StateKey(ctx, from.Settings.Serve.StateKey)
	if err != nil {
		return "", &engine.InputError{Err: err}
	}
	return key, nil
}
