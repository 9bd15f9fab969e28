package servecmd

import (
	"context"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
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
		e.IO.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "store_away", Message: "serve.store cannot be used: " + err.Error(), Hint: hint})
	}
	if shared.Wait(ctx) != nil {
		return false
	}
	hint = "until it is back, calls that need an answer or are limited are refused"
	return true
}
