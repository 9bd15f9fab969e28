package runcmd

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
)

// Document is the JSON of run --check.
type Document struct {
	Findings []engine.Finding `json:"findings"` // in the order of the script
}

// check reports the mistakes in a script without running it.
func check(ctx context.Context, e *cli.Env, s *engine.Session, name string, text []byte) error {
	findings, reg, err := s.Scripts.Check(ctx, name, text)
	if reg != nil {
		e.IO.DiagnoseExcept(s.Tools.Diagnostics(reg), err)
	}
	if err != nil {
		return err
	}
	if e.IO.JSON {
		if err := e.IO.PrintJSON(Document{findings}); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			if _, err := fmt.Fprintf(e.IO.Out, "%s: %s\n", f.At, f.Message); err != nil {
				return err
			}
		}
	}
	if len(findings) > 0 {
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	return nil
}
