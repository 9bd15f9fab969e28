// Package approvalscmd implements the command approvals, which shows and
// revokes "always" answers, and answers questions that nobody could be asked.
package approvalscmd

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

type options struct{ all bool }

// New returns the command approvals.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	list := func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), e, o) }
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "Show and revoke remembered answers, answer open questions",
		Long: `Show and revoke the "always" answers that toolreg remembers for this project, and
answer questions about calls that came up when nobody could be asked.

An answer applies as long as the tool is unchanged: its definition and the command
or server that provides it. After a change you are asked again.

Without a subcommand it shows the same as "toolreg approvals list".

Exit codes: 0, 2.`,
		Example: `  toolreg approvals --all
  toolreg approvals revoke 3f9a
  toolreg approvals pending`,
		Args: cli.NoArgs,
		RunE: list,
	}
	cmd.PersistentFlags().BoolVar(&o.all, "all", false, "include all projects, not just this one")
	cmd.AddCommand(
		&cobra.Command{Use: "list", Short: "Show remembered answers", Args: cli.NoArgs, RunE: list,
			Long: `Show the answers that toolreg remembers for this project.

In a pipe each answer is one line: id, kind, value, source, time, project and the
client of "toolreg serve" that gave it, separated by tabs. Exit codes: 0, 2.`,
			Example: "  toolreg approvals list\n  toolreg approvals list --all --json"},
		&cobra.Command{
			Use: "revoke ID…", Short: "Revoke answers by id or id prefix",
			Args:              cli.ArgsBetween(1, -1, "the ids that approvals list shows"),
			ValidArgsFunction: complete.Args(completeIDs(e, o)),
			Long: `Revoke answers by the ids that "toolreg approvals list" shows, or by prefixes of
them. You are then asked again.

Exit codes: 0, 2, 3 (no such approval), 5 (inside a tool's run).`,
			Example: "  toolreg approvals revoke 3f9a",
			RunE:    func(cmd *cobra.Command, ids []string) error { return runRevoke(cmd.Context(), e, ids) },
		},
		&cobra.Command{Use: "clear", Short: "Revoke all answers", Args: cli.NoArgs,
			Long: `Revoke every answer that is remembered for this project, or with --all for every
project.

Exit codes: 0, 2, 5 (inside a tool's run).`,
			Example: "  toolreg approvals clear\n  toolreg approvals clear --all",
			RunE:    func(cmd *cobra.Command, _ []string) error { return runClear(cmd.Context(), e, o) }},
		&cobra.Command{Use: "pending", Short: "Show open questions about calls", Args: cli.NoArgs,
			Long: `Show the questions about calls in this project that came up when nobody could be
asked. They are kept for a day. --json has everything that a terminal would show.

Exit codes: 0, 2.`,
			Example: "  toolreg approvals pending\n  toolreg approvals pending --all --json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return runPending(cmd.Context(), e, o) }},
		&cobra.Command{
			Use: "answer ID yes|always|always-server|no [REASON]", Short: "Answer an open question",
			Args: cli.ArgsBetween(2, -1, "the id of a question and yes, always, always-server or no"),
			ValidArgsFunction: complete.Args(completeQuestions(e),
				complete.Words(exec.WordYes, exec.WordAlways, exec.WordAlwaysServer, exec.WordNo)),
			Long: `Answer a question by the id that "toolreg approvals pending" shows, or by a prefix.
With "yes", the same call is allowed once when it is made again within the day; with
"no", it is refused once, and the model is told the reason. "always" is remembered
like the answer at a terminal; "always-server" covers all tools of an MCP server.

An answer is void if the tool, the file that was shown or the rule that asked has
changed when the call is made again.

Exit codes: 0, 2, 3 (no such question), 5 (inside a tool's run).`,
			Example: "  toolreg approvals answer 3f9a yes\n  toolreg approvals answer 3f9a no use the staging database",
			RunE:    func(cmd *cobra.Command, argv []string) error { return runAnswer(cmd.Context(), e, argv) },
		},
	)
	return cmd
}

func completeIDs(e *cli.Env, o *options) cobra.CompletionFunc {
	return e.Complete().Settings(func(ctx context.Context, set *settings.Settings) []cobra.Completion {
		found, err := engine.OpenApprovals(set, e.Config.Folders, nil, e.IO.Warn).List(ctx, o.all)
		if err != nil {
			return nil
		}
		return complete.List(found, func(x policy.Approval) (string, string) {
			return x.ID, strings.TrimSpace(string(x.Kind) + " " + x.Value)
		})
	})
}

// approvals opens the approvals. A missing state folder is an error, because there is
// nothing to show without it.
func approvals(ctx context.Context, e *cli.Env) (*policy.Approvals, error) {
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return nil, err
	}
	shared, err := sources.OpenStore(ctx, s.Serve, values.NewExpander(s.ProjectRoot, e.Config.Environ))
	if err != nil {
		return nil, err
	}
	store := engine.OpenApprovals(s, e.Config.Folders, shared, e.IO.Warn)
	return store, store.Unavailable
}

func newApprovals(list []policy.Approval) []Approval {
	out := make([]Approval, len(list))
	for i, x := range list {
		out[i] = NewApproval(x)
	}
	return out
}

func runList(ctx context.Context, e *cli.Env, o *options) error {
	store, err := approvals(ctx, e)
	if err != nil {
		return err
	}
	found, err := store.List(ctx, o.all)
	if err != nil {
		return err
	}
	t := ui.Table{
		Header: []string{"ID", "KIND", "VALUE", "SOURCE", "CREATED", "PROJECT", "CLIENT"},
		Whole:  []string{"VALUE"}, Spare: []string{"PROJECT", "CREATED"},
	}
	for _, x := range found {
		t.Add(x.ID, string(x.Kind), x.Covers(), x.Source,
			x.Created.Local().Format(time.DateTime), cmp.Or(x.Workspace, x.Project), x.Client)
	}
	if e.IO.OutTTY {
		t.DropEmpty("CLIENT")
	}
	return e.IO.PrintResult(map[string][]Approval{"approvals": newApprovals(found)}, &t, "approval")
}

func runRevoke(ctx context.Context, e *cli.Env, ids []string) error {
	if err := e.Config.RefuseInside("revoking approvals"); err != nil {
		return err
	}
	store, err := approvals(ctx, e)
	if err != nil {
		return err
	}
	gone, err := store.Revoke(ctx, ids...)
	if err != nil {
		return err
	}
	for _, x := range gone {
		e.IO.Notef("revoked %s (%s)", x.ID, strings.TrimSpace(string(x.Kind)+" "+x.Covers()))
	}
	return e.IO.Report(map[string][]Approval{"revoked": newApprovals(gone)})
}

func runClear(ctx context.Context, e *cli.Env, o *options) error {
	if err := e.Config.RefuseInside("revoking approvals"); err != nil {
		return err
	}
	store, err := approvals(ctx, e)
	if err != nil {
		return err
	}
	n, err := store.Clear(ctx, o.all)
	if err != nil {
		return err
	}
	e.IO.Notef("revoked %s", text.Count(n, "approval"))
	return e.IO.Report(map[string]int{"cleared": n})
}

// Approval is the JSON form of an approval, without the state of the tool that it is tied to.
type Approval struct {
	ID      string           `json:"id"`
	Kind    policy.ScopeKind `json:"kind"`
	Value   string           `json:"value,omitempty"` // command, host or folder that it is limited to
	Source  string           `json:"source"`
	Tools   []string         `json:"tools"`   // tools that it covers, by their sources' own names
	Project string           `json:"project"` // project root
	// Workspace is the folder that it is limited to, if that is not the project root.
	Workspace string    `json:"workspace,omitempty"`
	Client    string    `json:"client,omitempty"`   // client of serve whose user answered
	Created   time.Time `json:"created"`            // when it was given
	Confined  bool      `json:"confined,omitempty"` // the commands run in the sandbox
}

// NewApproval converts an approval for JSON.
func NewApproval(x policy.Approval) Approval {
	return Approval{x.ID, x.Kind, x.Value, x.Source, slices.Sorted(maps.Keys(x.Tools)),
		x.Project, x.Workspace, x.Client, x.Created, x.Confined}
}

func completeQuestions(e *cli.Env) cobra.CompletionFunc {
	return e.Complete().Settings(func(ctx context.Context, set *settings.Settings) []cobra.Completion {
		questions := policy.Questions{Approvals: engine.OpenApprovals(set, e.Config.Folders, nil, e.IO.Warn)}
		list, err := pending(ctx, &questions, true)
		if err != nil {
			return nil
		}
		return complete.List(list, func(q engine.KeptQuestion) (string, string) { return q.ID, q.Tool })
	})
}

func pending(ctx context.Context, questions *policy.Questions, all bool) ([]engine.KeptQuestion, error) {
	list, err := questions.Pending(ctx, all)
	if err != nil {
		return nil, err
	}
	out := make([]engine.KeptQuestion, len(list))
	for i, k := range list {
		if out[i], err = engine.NewKeptQuestion(k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func runPending(ctx context.Context, e *cli.Env, o *options) error {
	store, err := approvals(ctx, e)
	if err != nil {
		return err
	}
	list, err := pending(ctx, &policy.Questions{Approvals: store}, o.all)
	if err != nil {
		return err
	}
	t := ui.Table{Header: []string{"ID", "TOOL", "ABOUT", "SOURCE", "CREATED", "PROJECT", "CLIENT"},
		Spare: []string{"PROJECT", "SOURCE"}}
	for _, q := range list {
		about := ui.Cut(ui.Line(cmp.Or(q.Command, string(q.Params))), 200)
		t.Add(q.ID, q.Tool, about, q.Source, q.Created.Local().Format(time.DateTime), q.Project, q.Client)
	}
	if e.IO.OutTTY {
		t.DropEmpty("CLIENT")
	}
	return e.IO.PrintResult(map[string][]engine.KeptQuestion{"questions": list}, &t, "question")
}

// answerDocument is the JSON of an answer.
type answerDocument struct {
	Answered string `json:"answered"` // id of the question
}

func runAnswer(ctx context.Context, e *cli.Env, argv []string) error {
	if err := e.Config.RefuseInside("answering questions"); err != nil {
		return err
	}
	id, choice, reason := argv[0], argv[1], strings.Join(argv[2:], " ")
	switch {
	case !slices.Contains([]string{exec.WordYes, exec.WordAlways, exec.WordAlwaysServer, exec.WordNo}, choice):
		return cli.Usage(fmt.Sprintf("%q is not an answer", choice),
			"answer with yes, always, always-server or no")
	case reason != "" && choice != exec.WordNo:
		return cli.Usage("a reason belongs to the answer no", "it tells the model why the call was refused")
	}
	store, err := approvals(ctx, e)
	if err != nil {
		return err
	}
	questions := policy.Questions{Approvals: store}
	answered, err := questions.Answer(ctx, id, choice, reason)
	if errors.Is(err, policy.ErrNotOffered) {
		return &cli.UsageError{Err: err, Hint: "toolreg approvals pending --json shows its choices"}
	}
	if err != nil {
		return err
	}
	e.IO.Notef("answered %s with %s", answered, choice)
	return e.IO.Report(answerDocument{answered})
}
