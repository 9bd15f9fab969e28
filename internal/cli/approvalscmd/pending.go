package approvalscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/ui"
)

// completeQuestions completes the ids of questions that wait for an answer.
func completeQuestions(e *cli.Env) cobra.CompletionFunc {
	return e.Complete().Settings(func(ctx context.Context, set *settings.Settings) []cobra.Completion {
		questions := policy.Questions{Approvals: engine.OpenApprovals(set, e.Config.Folders, nil, e.IO.Warn)}
		list, err := pending(ctx, &questions, true)
		if err != nil {
			return nil
		}
		var out []cobra.Completion
		for _, q := range list {
			out = append(out, cobra.CompletionWithDesc(q.ID, q.Tool))
		}
		return out
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
