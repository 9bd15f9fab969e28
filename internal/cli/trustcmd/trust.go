// Package trustcmd implements the command trust, which manages trust in a
// project's settings.
package trustcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
	"github.com/toolreg/toolreg/internal/ui"
)

type options struct{ hash string }

// New returns the command trust.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	status := func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), e) }
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Manage trust in this project's settings",
		Long: `A project's settings can run programs, so they apply only once you trust them.
Trust is tied to the exact content of the settings and of the files inside the
project that they run: when one of them changes, you must grant trust again.

Without a subcommand it shows the same as "toolreg trust status", or says that the
project has nothing that needs trust.

Exit codes: 0, 2.`,
		Example: `  toolreg trust
  toolreg trust grant`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, argv []string) error {
			err := status(cmd, argv)
			if !errors.Is(err, registry.ErrNotFound) {
				return err
			}
			set, _, loadErr := e.Config.Load(cmd.Context())
			if loadErr != nil {
				return loadErr
			}
			none := []string{}
			return e.IO.PrintText(trustDocument{Root: set.ProjectRoot, Files: none, Runs: none, Loosens: none, Expands: none},
				err.Error()+"; nothing needs trust\n")
		},
	}
	grant := &cobra.Command{Use: "grant", Short: "Show what the project would run, and trust it", Args: cli.NoArgs,
		Long: `Show what the project would run, loosen and read, and trust it if you say yes.

If nobody can be asked, as in CI, --hash grants without a question if the
files still have the hash that was reviewed: store the hash that
"toolreg trust status --jq .hash" prints with the job. --trust-project trusts
any content for one run.

Exit codes: 0, 2 (the files have another hash), 3 (the project has no settings),
5 (you said no, or it cannot be trusted), 6 (nobody to ask).`,
		Example: `  toolreg trust grant
  toolreg trust grant --hash "$(cat .toolreg/trusted-hash)"`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runGrant(cmd.Context(), e, o) }}
	grant.Flags().StringVar(&o.hash, "hash", "",
		"grant without a question if the files have this `hash` (from trust status)")
	cmd.AddCommand(
		&cobra.Command{Use: "status", Short: "Show whether the project is trusted, and what it would run",
			Args: cli.NoArgs, RunE: status,
			Long: `Show whether the project is trusted, which files the trust covers, and what they
would run, loosen and read.

Exit codes: 0, 2, 3 (the project has no settings).`,
			Example: "  toolreg trust status\n  toolreg trust status --jq .hash"},
		grant,
		&cobra.Command{Use: "revoke", Short: "Stop trusting the project", Args: cli.NoArgs,
			Long: `Stop trusting the project, so that its settings and plugins are ignored again.

Exit codes: 0, 2, 3 (the project has no settings), 5 (inside a tool's run).`,
			Example: "  toolreg trust revoke",
			RunE:    func(cmd *cobra.Command, _ []string) error { return runRevoke(cmd.Context(), e) }},
	)
	return cmd
}

// project loads the settings and returns the project's, which must exist.
func project(ctx context.Context, config *cli.Config) (*settings.Project, error) {
	s, _, err := config.Load(ctx) // the result includes the diagnostics
	if err != nil {
		return nil, err
	}
	if s.Project == nil {
		return nil, &registry.Failure{Text: "no settings or plugins of a project in " + s.ProjectRoot,
			Help: "toolreg init team creates them; use --root DIR for another project", Kind: registry.ErrNotFound}
	}
	return s.Project, nil
}

// trustDocument is the JSON of trust status.
type trustDocument struct {
	Root     string         `json:"root"` // project root
	Trusted  bool           `json:"trusted"`
	Granted  *time.Time     `json:"granted,omitempty"`  // when trust was granted
	Declined bool           `json:"declined,omitempty"` // whether the user refused to trust it in its current state
	Hash     string         `json:"hash"`               // hash of the files below
	Files    []string       `json:"files"`              // files that trust covers
	Runs     []string       `json:"runs"`               // what the settings would run and contact
	Loosens  []string       `json:"loosens"`            // what they would allow
	Expands  []string       `json:"expands"`            // variables that they read
	Changes  []trust.Change `json:"changes,omitempty"`  // what differs from the grant
	Obstacle string         `json:"obstacle,omitempty"` // why trust cannot be granted
}

func runStatus(ctx context.Context, e *cli.Env) error {
	p, err := project(ctx, e.Config)
	if err != nil {
		return err
	}
	d := trustDocument{
		Root: p.Root, Trusted: p.Trusted, Declined: !p.Trusted && e.Trust.Declined(p), Hash: p.Hash,
		Files: cli.OrEmpty(p.Files), Runs: cli.OrEmpty(p.Runs),
		Loosens: cli.OrEmpty(p.Loosens), Expands: cli.OrEmpty(p.Expands), Changes: p.Changes, Obstacle: p.Obstacle,
	}
	if !p.Granted.IsZero() {
		d.Granted = &p.Granted
	}
	state := "not trusted"
	switch {
	case p.Trusted:
		state = "trusted"
	case d.Declined:
		state = "not trusted, because you declined; run toolreg trust grant to change that"
	}
	return e.IO.PrintText(d, fmt.Sprintf("project: %s\nstate:   %s\nhash:    %s\n", ui.Line(p.Root), state, p.Hash)+
		cli.DescribeProject(p, e.IO.Width(), e.IO.Color(e.IO.OutTTY)))
}

func runGrant(ctx context.Context, e *cli.Env, o *options) error {
	if err := e.Config.RefuseInside("granting trust"); err != nil {
		return err
	}
	p, err := project(ctx, e.Config)
	if err != nil {
		return err
	}
	if p.Obstacle != "" {
		return fmt.Errorf("%w: the project cannot be trusted as it is: %s", registry.ErrDenied, p.Obstacle)
	}
	if err := agreed(ctx, e, p, o.hash); err != nil {
		return err
	}
	if err := e.Trust.Grant(ctx, p); err != nil {
		return err
	}
	return e.IO.Report(trustedDocument{Root: p.Root, Trusted: true, Hash: p.Hash})
}

// trustedDocument is the JSON of trust grant and trust revoke.
type trustedDocument struct {
	Root    string `json:"root"`
	Trusted bool   `json:"trusted"`
	Changed *bool  `json:"changed,omitempty"` // for revoke: whether there was trust
	Hash    string `json:"hash,omitempty"`    // hash that was granted
}

// agreed returns nil if the hash on the command line matches the files, or if
// the person answers yes.
func agreed(ctx context.Context, e *cli.Env, p *settings.Project, hash string) error {
	globals := &e.Config.Globals
	if hash != "" {
		if hash != p.Hash {
			return cli.Usage(fmt.Sprintf("the files have the hash %s, not %s", p.Hash, hash),
				"run "+globals.Command("trust status")+" again")
		}
		return nil
	}
	nobody := &registry.Failure{Kind: registry.ErrNeedsConfirmation,
		Text: "granting trust: " + registry.ErrNeedsConfirmation.Error(),
		Help: globals.Command("trust status") + " shows what would run; then " +
			globals.Command("trust grant --hash "+p.Hash) + " grants it without a question"}
	tty, err := e.Person.Require(nobody)
	if err != nil {
		return err
	}
	defer tty.Close()
	if agreed, err := cli.AskTrust(ctx, tty, p); err != nil && !errors.Is(err, ui.ErrNoAnswer) {
		return err
	} else if !agreed {
		return fmt.Errorf("%w: you said no", registry.ErrDenied)
	}
	return nil
}

func runRevoke(ctx context.Context, e *cli.Env) error {
	if err := e.Config.RefuseInside("revoking trust"); err != nil { // the project's rules may deny what a tool does
		return err
	}
	p, err := project(ctx, e.Config)
	if err != nil {
		return err
	}
	store, err := e.Trust.Store()
	if err != nil {
		return err
	}
	had, err := store.Revoke(ctx, p.Root)
	if err != nil {
		return err
	}
	text := "was not trusted"
	if had {
		text = "is no longer trusted"
	}
	e.IO.Notef("%s %s", p.Root, text)
	return e.IO.Report(trustedDocument{Root: p.Root, Changed: &had})
}
