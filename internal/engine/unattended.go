package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// KeptQuestion is a question about a call that waits for an answer.
type KeptQuestion struct {
	ID      string          `json:"id"`
	CallID  json.RawMessage `json:"callId,omitempty"` // with --hold, the model's id of the call
	Client  string          `json:"client"`           // client of serve that made the call; "" otherwise
	Project string          `json:"project"`          // project root
	Created time.Time       `json:"created"`
	Expires time.Time       `json:"expires"`
	exec.Prompt
}

// NewKeptQuestion decodes a question. It fails if this program did not write the question.
func NewKeptQuestion(k policy.KeptQuestion) (KeptQuestion, error) {
	q := KeptQuestion{ID: k.ID, Client: k.Client, Project: k.Project,
		Created: k.Created.Truncate(time.Second), Expires: k.Expires.Truncate(time.Second)}
	if err := json.Unmarshal([]byte(k.Question), &q.Prompt); err != nil {
		return q, fmt.Errorf("question %s: %w", k.ID, err)
	}
	return q, nil
}

// unattended keeps questions that nobody could be asked, and returns their answers. It implements
// [exec.Unattended].
type unattended struct {
	command   *approvalCommand // answers immediately; may be nil
	policies  *policies
	reports   *reports
	describe  func(exec.Question) exec.Prompt // see [Deps.Describe]
	workspace string
	replayed  bool // the calls are those of a recording
	questions *policy.Questions
}

func (u *unattended) Answered(ctx context.Context, q *exec.Question) (exec.Answer, string, bool) {
	call, state, err := u.identify(ctx, q)
	if err != nil || len(q.Denied) > 0 {
		return exec.Answer{}, "", false
	}
	found, ok := u.questions.Answered(ctx, call, state)
	if found.Choice == exec.WordYes {
		return exec.Answer{Choice: exec.Yes}, found.ID, ok
	}
	return exec.Answer{Choice: exec.No, Said: found.Reason}, found.ID, ok
}

func (u *unattended) Claim(ctx context.Context, ids ...string) bool {
	return u.questions.Claim(ctx, ids...)
}

func (u *unattended) Absent(ctx context.Context, q *exec.Question) (exec.Answer, *policy.KeptQuestion, bool) {
	if u.command != nil {
		return u.command.answer(ctx, q), nil, true
	}
	if len(q.Denied) > 0 || u.replayed { // no answer would reach a replayed call
		return exec.Answer{}, nil, false
	}
	kept, ok := u.keep(ctx, q)
	if !ok {
		return exec.Answer{}, nil, false
	}
	if !q.Call.Last { // the error of the only call names the question
		state := "waits for an answer"
		if kept.Choice != "" {
			state = "has an answer, which could not be taken"
		}
		u.reports.aboutCall(q.Tool, "question_kept",
			fmt.Sprintf("question %s about %q %s", kept.ID, q.Tool.Name, state), AnswerHint(&kept))
	}
	return exec.Answer{}, &kept, false
}

func (u *unattended) Keep(ctx context.Context, q *exec.Question) string {
	if !u.replayed {
		if kept, ok := u.keep(ctx, q); ok {
			return kept.ID
		}
	}
	return ""
}

func (u *unattended) Settled(ctx context.Context, t *registry.Tool, sent registry.Call, asked bool) {
	if !u.replayed {
		u.questions.Forget(ctx, func() string { return u.callID(ctx, t, sent, 0) }, asked)
	}
}

func (u *unattended) Stamp(ctx context.Context) string {
	return fmt.Sprintf("%p %s", u.policies.newest(), u.questions.Stamp(ctx))
}

// AnswerHint says how to answer a kept question, or what to do if its answer was not used.
func AnswerHint(k *policy.KeptQuestion) string {
	if k.Choice != "" {
		return "the same call again takes the answer to question " + k.ID + ", which was not possible now"
	}
	return "toolreg approvals answer " + k.ID + " yes allows it once"
}

// keep stores a question. If that fails, it warns, unless the call is over.
func (u *unattended) keep(ctx context.Context, q *exec.Question) (policy.KeptQuestion, bool) {
	kept, err := u.kept(ctx, *q)
	if err == nil {
		kept, err = u.questions.Keep(ctx, kept)
	}
	if err != nil && context.Cause(ctx) == nil {
		u.reports.aboutCall(q.Tool, "question_not_kept",
			fmt.Sprintf("the question about %q is not kept, so it cannot be answered later: %v", q.Tool.Name, err), "")
	}
	return kept, err == nil
}

func (u *unattended) kept(ctx context.Context, q exec.Question) (policy.KeptQuestion, error) {
	kept := policy.KeptQuestion{Client: caller.Name(ctx)}
	var err error
	if kept.Call, kept.State, err = u.identify(ctx, &q); err != nil {
		return kept, err
	}
	for _, word := range []string{exec.WordAlways, exec.WordAlwaysServer} {
		choice, _ := q.Choice(word)
		scope, ok := q.Scope(choice)
		if !ok {
			continue
		}
		approvals, err := u.questions.Approvals.New(ctx, q.Tool, scope)
		switch {
		case err != nil:
			return kept, err
		case word == exec.WordAlways:
			kept.Always = approvals
		case !kept.OfferServer(approvals):
			q.Choices = slices.DeleteFunc(slices.Clone(q.Choices), func(c exec.Choice) bool { return c == choice })
		}
	}
	question, err := jsonx.Marshal(u.describe(q))
	if err != nil {
		return kept, err
	}
	kept.Question = string(question)
	return kept, nil
}

// identify returns an id of the call that a question is about, and an id of the state in which it
// was asked.
func (u *unattended) identify(ctx context.Context, q *exec.Question) (call, state string, err error) {
	pin, err := u.questions.Approvals.Pin(ctx, q.Tool)
	if err != nil {
		return "", "", err
	}
	v, p, rule := &q.Verdict, &q.Preview, policy.Rule{}
	if v.Rule != nil {
		rule = *v.Rule
	}
	when := ""
	if rule.When != nil {
		when = rule.When.Text
	}
	rule.When = nil
	state = hashOf(pin, p.Kind, p.Basis, p.FileName, p.OriginalContent,
		p.NewContent, p.Diff, p.Command, p.Directory, p.Background,
		v.Reason, v.Origin, rule, when, v.Commands, v.Confine.On, v.Confine.By, v.Confine.Missing)
	return u.callID(ctx, q.Tool, q.Call, q.Copy), state, nil
}

// callID identifies a call. sent is what its question shows; copy is Copy of the question.
func (u *unattended) callID(ctx context.Context, t *registry.Tool, sent registry.Call, copy int) string {
	a := u.questions.Approvals
	folder := a.Folder
	if a.Shares(ctx) { // with processes that may be on other machines
		folder = ""
	}
	return hashOf(t.Source, t.OriginalName(), jsonx.Canonical(sent.Params),
		u.workspace, a.Project, folder, caller.Name(ctx), copy)
}

// approvalCommand answers questions about calls with the program of the setting approval.command.
type approvalCommand struct {
	programs *programs.Set
	reports  *reports
	describe func(exec.Question) exec.Prompt // see [Deps.Describe]
}

// newApprovalCommand returns nil if the setting is empty, or the program may not be asked in this
// run.
func newApprovalCommand(p *programs.Set, r *reports, describe func(exec.Question) exec.Prompt) *approvalCommand {
	if !p.Settings.Approval.Command.IsSet() || p.Settings.Globals.NonInteractive || process.InsideTool(p.Environ) {
		return nil
	}
	return &approvalCommand{p, r, describe}
}

// answer asks the program. Anything but a valid answer counts as no.
func (c *approvalCommand) answer(ctx context.Context, q *exec.Question) exec.Answer {
	defer c.reports.screen.Watch()()
	c.reports.screen.Line("approval.command", "asking about "+q.Tool.Name)
	answer, stderr, err := c.ask(ctx, q)
	c.reports.screen.Line("approval.command", "")
	if err == nil || context.Cause(ctx) != nil {
		return answer
	}
	c.reports.aboutCall(q.Tool, "approval_command_failed",
		fmt.Sprintf("approval.command gave no answer about %q, which means no: %v%s", q.Tool.Name, err, tailOf(stderr)),
		"set at "+c.programs.Settings.Approval.Command.Origin.String())
	return exec.Answer{Reason: "there was no valid answer"}
}

// ask returns the answer, and what the program wrote to stderr.
func (c *approvalCommand) ask(ctx context.Context, q *exec.Question) (a exec.Answer, stderr []byte, err error) {
	set := c.programs.Settings
	command := set.Approval.Command
	argv, err := c.programs.Expander.Command(command)
	if err != nil {
		return a, nil, err
	}
	dir := set.ProjectRoot
	if command.Origin.Scope != settings.ScopeFile { // it serves every project, and may run what is in its folder
		if dir, err = c.programs.Folders.Neutral(); err != nil {
			return a, nil, err
		}
	}
	env, err := values.ToolEnviron(ctx, set.For(command.Origin.Scope), c.programs.Expander, c.programs.Environ)
	if err != nil {
		return a, nil, err
	}
	question, err := jsonx.Marshal(struct {
		CallID json.RawMessage `json:"callId,omitempty"`
		exec.Prompt
	}{q.Call.ID, c.describe(*q)})
	if err != nil {
		return a, nil, err
	}
	limit := set.Approval.Timeout
	ctx, cancel := timing.Limit(ctx, limit, fmt.Errorf("time limit of %s reached (approval.timeout)", limit))
	defer cancel()
	// It runs outside the sandbox, because it has to reach a person.
	out, err := process.Run(ctx, process.Spec{
		Argv: argv, Dir: dir, Env: env, NotFrom: set.Workspace,
		Stdin: append(text.EscapeJSON(question), '\n'), MaxOutput: registry.MaxParamsBytes,
	})
	if err = cmp.Or(err, out.Err()); err != nil {
		return a, out.Stderr, err
	}
	printed := text.WithoutMark(out.Stdout)
	if err := jsonx.Check(printed, jsonx.Options{Strict: true}); err != nil {
		return a, out.Stderr, fmt.Errorf("its output is not JSON: %w", err)
	}
	var reply exec.Reply
	if err := jsonx.DecodeKnown(printed, &reply); err != nil {
		return a, out.Stderr, fmt.Errorf("its output is not an answer: %w", err)
	}
	if a, err = reply.Answer(q); err != nil {
		err = fmt.Errorf("its output is not an answer: %w", err)
	}
	return a, out.Stderr, err
}
