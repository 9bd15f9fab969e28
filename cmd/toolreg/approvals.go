package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

type approvalsOptions struct{ all bool }

func newApprovalsCommand(a *app) *cobra.Command {
	o := &approvalsOptions{}
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "Show and revoke remembered answers",
		Long: `Show and revoke the answers "always" that toolreg remembers for this project.

Exit codes: 0, 2, 3 (no such approval).`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runApprovalsList(cmd.Context(), a, o) },
	}
	cmd.PersistentFlags().BoolVar(&o.all, "all", false, "those of all projects")
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Show remembered answers", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return runApprovalsList(cmd.Context(), a, o) }},
		&cobra.Command{Use: "revoke ID…", Short: "Forget answers by their ids", Args: argsBetween(1, -1, "the ids that approvals list shows"),
			RunE: func(cmd *cobra.Command, ids []string) error { return runApprovalsRevoke(cmd.Context(), a, ids) }},
		&cobra.Command{Use: "clear", Short: "Forget all answers", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return runApprovalsClear(cmd.Context(), a, o) }},
	)
	return cmd
}

func (a *app) approvals(ctx context.Context) (*policy.Approvals, error) {
	s, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	d, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return &policy.Approvals{Dir: d, Project: s.ProjectRoot, Warn: a.warn}, nil
}

// approval is one approval as JSON; what it pins stays inside.
type approval struct {
	ID      string           `json:"id"`
	Kind    policy.ScopeKind `json:"kind"`
	Value   string           `json:"value,omitempty"`
	Source  string           `json:"source"`
	Project string           `json:"project"`
	Created time.Time        `json:"created"`
}

func runApprovalsList(ctx context.Context, a *app, o *approvalsOptions) error {
	store, err := a.approvals(ctx)
	if err != nil {
		return err
	}
	found, err := store.List(o.all)
	if err != nil {
		return err
	}
	out := make([]approval, len(found))
	for i, f := range found {
		out[i] = approval{f.ID, f.Kind, f.Value, f.Source, f.Project, f.Created}
	}
	if a.globals.JSON {
		return a.printJSON(map[string][]approval{"approvals": out})
	}
	t := table{header: []string{"ID", "KIND", "VALUE", "SOURCE", "CREATED", "PROJECT"}}
	for _, x := range out {
		t.add(x.ID, string(x.Kind), x.Value, x.Source, x.Created.Local().Format(time.DateTime), x.Project)
	}
	return t.print(a)
}

func runApprovalsRevoke(ctx context.Context, a *app, ids []string) error {
	store, err := a.approvals(ctx)
	if err != nil {
		return err
	}
	if err := a.refuseInside("revoking approvals"); err != nil {
		return err
	}
	gone, err := store.Revoke(ctx, ids...)
	if err != nil {
		return err
	}
	if len(gone) < len(ids) {
		known := map[string]bool{}
		for _, g := range gone {
			known[g.ID] = true
		}
		var missing []string
		for _, id := range ids {
			if !known[id] {
				missing = append(missing, id)
			}
		}
		return fmt.Errorf("no approval with id %s: %w", strings.Join(missing, ", "), registry.ErrNotFound)
	}
	return nil
}

func runApprovalsClear(ctx context.Context, a *app, o *approvalsOptions) error {
	store, err := a.approvals(ctx)
	if err != nil {
		return err
	}
	n, err := store.Clear(ctx, o.all)
	if err != nil {
		return err
	}
	if !a.globals.Quiet {
		a.note(fmt.Sprintf("toolreg: forgot %d approvals\n", n))
	}
	return nil
}
