package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/policy"
)

type approvalsOptions struct{ all bool }

func newApprovalsCommand(a *app) *cobra.Command {
	o := &approvalsOptions{}
	list := func(cmd *cobra.Command, _ []string) error { return runApprovalsList(cmd.Context(), a, o) }
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "Show and revoke remembered answers",
		Long: `Show and revoke the answers "always" that toolreg remembers for this project.

An answer counts as long as the tool is what it was when you gave it: its
definition and the command or server behind it. Afterwards you are asked again.

Exit codes: 0, 2, 3 (no such approval), 5 (inside a tool's run).`,
		Args: noArgs,
		RunE: list,
	}
	cmd.PersistentFlags().BoolVar(&o.all, "all", false, "those of all projects")
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Show remembered answers", Args: noArgs, RunE: list},
		&cobra.Command{Use: "revoke ID…", Short: "Forget answers by their ids, or by how these begin", Args: argsBetween(1, -1, "the ids that approvals list shows"),
			RunE: func(cmd *cobra.Command, ids []string) error { return runApprovalsRevoke(cmd.Context(), a, ids) }},
		&cobra.Command{Use: "clear", Short: "Forget all answers", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return runApprovalsClear(cmd.Context(), a, o) }},
	)
	return cmd
}

// approvals opens what is remembered. Without a state directory this command
// has nothing to show, so that is an error here.
func (a *app) approvals(ctx context.Context) (*policy.Approvals, error) {
	s, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	store := a.approvalStore(s)
	return store, store.Unavailable
}

// approval is one approval as JSON; what it pins stays inside.
type approval struct {
	ID      string           `json:"id"`
	Kind    policy.ScopeKind `json:"kind"`
	Value   string           `json:"value,omitempty"`
	Source  string           `json:"source"`
	Tools   []string         `json:"tools"` // that it covers, by their sources' own names
	Project string           `json:"project"`
	Created time.Time        `json:"created"`
}

func newApproval(x policy.Approval) approval {
	return approval{x.ID, x.Kind, x.Value, x.Source, slices.Sorted(maps.Keys(x.Pins)), x.Project, x.Created}
}

func newApprovals(list []policy.Approval) []approval {
	out := make([]approval, len(list))
	for i, x := range list {
		out[i] = newApproval(x)
	}
	return out
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
	out := newApprovals(found)
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
	if err := a.refuseInside("revoking approvals"); err != nil {
		return err
	}
	store, err := a.approvals(ctx)
	if err != nil {
		return err
	}
	gone, err := store.Revoke(ctx, ids...)
	if err != nil {
		return err
	}
	if a.globals.JSON {
		return a.printJSON(map[string][]approval{"revoked": newApprovals(gone)})
	}
	for _, x := range gone {
		a.tell("forgot %s (%s)", x.ID, strings.TrimSpace(string(x.Kind)+" "+x.Value))
	}
	return nil
}

func runApprovalsClear(ctx context.Context, a *app, o *approvalsOptions) error {
	if err := a.refuseInside("revoking approvals"); err != nil {
		return err
	}
	store, err := a.approvals(ctx)
	if err != nil {
		return err
	}
	n, err := store.Clear(ctx, o.all)
	if err != nil {
		return err
	}
	if a.globals.JSON {
		return a.printJSON(map[string]int{"cleared": n})
	}
	what := "approvals"
	if n == 1 {
		what = "approval"
	}
	a.tell("forgot %d %s", n, what)
	return nil
}

// tell says on stderr what was done, unless --quiet.
func (a *app) tell(format string, args ...any) {
	if !a.globals.Quiet {
		a.noteText(failure{message: fmt.Sprintf(format, args...)})
	}
}
