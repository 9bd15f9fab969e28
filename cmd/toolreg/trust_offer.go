package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

// offerTrust asks on a terminal, once, whether a project that is not trusted
// may be (spec section 9), and loads the settings again after a yes. A no is
// remembered for exactly what was shown; later runs warn only.
func (a *app) offerTrust(ctx context.Context, s *settings.Settings, diags []registry.Diagnostic) (*settings.Settings, []registry.Diagnostic, error) {
	p := s.Project
	if p == nil || p.Trusted || p.Obstacle != "" || p.Hash == "" || !a.mayOffer() || a.declined(p) {
		return s, diags, nil
	}
	tty, err := terminal.OpenTTY()
	if err != nil {
		return s, diags, nil // nobody is there; the warning says what to do
	}
	defer tty.Close()
	agreed, err := askTrust(ctx, tty, p)
	switch {
	case errors.Is(err, terminal.ErrNoAnswer):
		return s, diags, nil
	case err != nil:
		return nil, nil, err
	case !agreed:
		a.decline(ctx, p)
		return s, diags, nil
	}
	if err := a.grantTrust(ctx, p); err != nil {
		return nil, nil, fmt.Errorf("remembering the trust: %w", err)
	}
	return settings.Load(a.settingsOptions())
}

// mayOffer reports whether a person is at work who would see the question: not
// for commands that have to be silent, not inside a tool's run.
func (a *app) mayOffer() bool {
	switch a.command {
	case "toolreg list", "toolreg call", "toolreg schema", "toolreg discover", "toolreg servers":
		return a.errTTY && !a.globals.NonInteractive && !a.globals.Quiet && depth(a.environ) == 0
	}
	return false
}

// declinedName is the state file that holds the hash of what the person does
// not trust in a project. Any other content means that nothing was declined.
func declinedName(p *settings.Project) string {
	sum := sha256.Sum256([]byte(p.Root))
	return "declined-" + hex.EncodeToString(sum[:8])
}

func (a *app) declined(p *settings.Project) bool {
	d, err := a.stateDir()
	if err != nil {
		return true // neither answer could be kept
	}
	data, err := d.Read(declinedName(p))
	return err == nil && string(data) == p.Hash+"\n"
}

func (a *app) decline(ctx context.Context, p *settings.Project) {
	d, err := a.stateDir()
	if err == nil {
		err = d.Update(ctx, declinedName(p), func([]byte) ([]byte, error) { return []byte(p.Hash + "\n"), nil })
	}
	if err != nil {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "answer_not_saved",
			Message: "the answer cannot be remembered, so the next run asks again: " + err.Error()})
	}
}
