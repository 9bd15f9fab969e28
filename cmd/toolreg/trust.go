package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
	"github.com/toolreg/toolreg/internal/trust"
)

type trustOptions struct{ hash string }

func newTrustCommand(a *app) *cobra.Command {
	o := &trustOptions{}
	status := func(cmd *cobra.Command, _ []string) error { return runTrustStatus(cmd.Context(), a) }
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Trust in this project's settings",
		Long: `A project's settings can run programs, so they count only once you trust them.
Trust is tied to the exact content of the settings and of the files inside the
project that they run: when one of them changes, trust has to be granted again.

Exit codes: 0, 2, 3 (the project has no settings), 5 (you said no), 6 (nobody to
ask).`,
		Args: noArgs,
		RunE: status,
	}
	grant := &cobra.Command{Use: "grant", Short: "Show what the project would run, and trust it", Args: noArgs,
		Long: `Show what the project would run, loosen and read, and trust it after a yes.

Where nobody is there to ask, as in CI, --hash grants without a question if the
files still have the hash that somebody has looked at: keep the hash that
"toolreg trust status --jq .hash" prints beside the job. --trust-project trusts
whatever is there, for one run.

Exit codes: 0, 2 (the files have another hash), 3 (the project has no settings),
5 (you said no, or it cannot be trusted), 6 (nobody to ask).`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTrustGrant(cmd.Context(), a, o) }}
	grant.Flags().StringVar(&o.hash, "hash", "", "grant without a question if the files have this `hash` (from trust status)")
	cmd.AddCommand(
		&cobra.Command{Use: "status", Short: "Show whether the project is trusted, and what it would run", Args: noArgs, RunE: status},
		grant,
		&cobra.Command{Use: "revoke", Short: "Forget that the project is trusted", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return runTrustRevoke(cmd.Context(), a) }},
	)
	return cmd
}

// noProjectError tells that there is nothing to trust.
type noProjectError struct{ root string }

func (e *noProjectError) Error() string {
	return fmt.Sprintf("no settings or plugins of a project in %s", e.root)
}

func (e *noProjectError) Is(target error) bool { return target == registry.ErrNotFound }

// project loads the settings and returns the project's, which must exist.
func (a *app) project(ctx context.Context) (*settings.Project, error) {
	a.reports = true // the result says what the warning would
	s, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	if s.Project == nil {
		return nil, &noProjectError{root: s.ProjectRoot}
	}
	return s.Project, nil
}

// trustDocument is the JSON of trust status.
type trustDocument struct {
	Root     string         `json:"root"`
	Trusted  bool           `json:"trusted"`
	Granted  *time.Time     `json:"granted,omitempty"`
	Hash     string         `json:"hash"`
	Files    []string       `json:"files"`
	Runs     []string       `json:"runs"`
	Loosens  []string       `json:"loosens"`
	Expands  []string       `json:"expands"`
	Changes  []trust.Change `json:"changes,omitempty"`
	Obstacle string         `json:"obstacle,omitempty"`
}

func runTrustStatus(ctx context.Context, a *app) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	if a.globals.JSON {
		d := trustDocument{Root: p.Root, Trusted: p.Trusted, Hash: p.Hash, Files: orEmpty(p.Files), Runs: orEmpty(p.Runs),
			Loosens: orEmpty(p.Loosens), Expands: orEmpty(p.Expands), Changes: p.Changes, Obstacle: p.Obstacle}
		if !p.Granted.IsZero() {
			d.Granted = &p.Granted
		}
		return a.printJSON(d)
	}
	var b strings.Builder
	state := "not trusted"
	if p.Trusted {
		state = "trusted"
	}
	fmt.Fprintf(&b, "project: %s\nstate:   %s\nhash:    %s\n", terminal.Line(p.Root), state, p.Hash)
	b.WriteString(describeProject(p))
	_, err = a.out.Write([]byte(b.String()))
	return err
}

// describeProject says what trusting the project means. All of it is the
// project's own text.
func describeProject(p *settings.Project) string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		b.WriteString(title + "\n")
		for _, l := range lines {
			b.WriteString("  " + terminal.Line(l) + "\n")
		}
	}
	section("files that trust is tied to:", p.Files)
	section("programs that would run:", p.Runs)
	section("settings that loosen what toolreg asks about or hides:", p.Loosens)
	section("variables and references that would be read:", p.Expands)
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s since trust was granted: %s\n", c.Kind, terminal.Line(c.Name))
		if c.Diff != "" {
			b.WriteString(block(c.Diff))
		}
	}
	if p.Obstacle != "" {
		b.WriteString("cannot be trusted as it is: " + terminal.Line(p.Obstacle) + "\n")
	}
	return b.String()
}

func runTrustGrant(ctx context.Context, a *app, o *trustOptions) error {
	if err := a.refuseInside("granting trust"); err != nil {
		return err
	}
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	if p.Obstacle != "" {
		return fmt.Errorf("%w: the project cannot be trusted as it is: %s", registry.ErrDenied, p.Obstacle)
	}
	if err := a.agreed(ctx, p, o.hash); err != nil {
		return err
	}
	if err := a.grantTrust(ctx, p); err != nil || !a.globals.JSON {
		return err
	}
	return a.printJSON(trustedDocument{Root: p.Root, Trusted: true, Hash: p.Hash})
}

// trustedDocument is the JSON of trust grant and trust revoke.
type trustedDocument struct {
	Root    string `json:"root"`
	Trusted bool   `json:"trusted"`
	Changed *bool  `json:"changed,omitempty"` // by revoke: whether there was trust
	Hash    string `json:"hash,omitempty"`    // that was granted
}

// grantNeedsPerson is trust that nobody is there to grant.
type grantNeedsPerson struct{}

func (*grantNeedsPerson) Error() string {
	return "granting trust: " + registry.ErrNeedsConfirmation.Error()
}

func (*grantNeedsPerson) Is(target error) bool { return target == registry.ErrNeedsConfirmation }

// grantTrust remembers that the project may do what it says now.
func (a *app) grantTrust(ctx context.Context, p *settings.Project) error {
	store, err := a.trustStore()
	if err != nil {
		return err
	}
	aside, err := store.Grant(ctx, p.Root, p.Covered, time.Now())
	if err != nil {
		return err
	}
	if aside != "" {
		a.warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "trust_damaged",
			Message: "the file of earlier grants was damaged; it was moved to " + aside})
	}
	if !a.globals.Quiet && !a.globals.JSON {
		a.note("toolreg: " + terminal.Line(p.Root) + " is trusted\n")
	}
	return nil
}

// agreed returns nil when the hash on the command line is that of the files,
// or when the person says yes to what is shown.
func (a *app) agreed(ctx context.Context, p *settings.Project, hash string) error {
	if hash != "" {
		if hash != p.Hash {
			return &usageError{err: fmt.Errorf("the files have the hash %s, not %s", p.Hash, hash), hint: "look at toolreg trust status again"}
		}
		return nil
	}
	if a.globals.NonInteractive {
		return &grantNeedsPerson{}
	}
	tty, err := terminal.OpenTTY()
	if err != nil {
		return &grantNeedsPerson{}
	}
	defer tty.Close()
	if agreed, err := askTrust(ctx, tty, p); err != nil && !errors.Is(err, terminal.ErrNoAnswer) {
		return err
	} else if !agreed {
		return fmt.Errorf("%w: you said no", registry.ErrDenied)
	}
	return nil
}

// askTrust shows what trusting a project means and asks. An error that is
// terminal.ErrNoAnswer is no answer, and not a no.
func askTrust(ctx context.Context, tty *terminal.TTY, p *settings.Project) (agreed bool, err error) {
	text := fmt.Sprintf("\nProject %s\n%s\nTrust this project? [y]es, [n]o: ", terminal.Line(p.Root), describeProject(p))
	answer, err := tty.Ask(ctx, text, 0)
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes"), err
}

func runTrustRevoke(ctx context.Context, a *app) error {
	p, err := a.project(ctx)
	if err != nil {
		return err
	}
	store, err := a.trustStore()
	if err != nil {
		return err
	}
	had, err := store.Revoke(ctx, p.Root)
	if err != nil {
		return err
	}
	if a.globals.JSON {
		return a.printJSON(trustedDocument{Root: p.Root, Changed: &had})
	}
	if !a.globals.Quiet {
		text := " was not trusted"
		if had {
			text = " is no longer trusted"
		}
		a.note("toolreg: " + terminal.Line(p.Root) + text + "\n")
	}
	return nil
}

// refuseInside fails inside a tool's run: a tool must not widen what it may do.
func (a *app) refuseInside(what string) error {
	if depth(a.environ) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is not possible inside a tool's run (%s is set)", registry.ErrDenied, what, depthVariable)
}

func (a *app) trustStore() (*trust.Store, error) {
	d, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return trust.NewStore(d), nil
}
