package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// approvalCommand answers questions about calls with the program of the setting approval.command.
type approvalCommand struct {
	programs *programs.Set
	reports  *reports
	describe func(exec.Question) exec.Prompt // see [Deps.Describe]
}

// newApprovalCommand returns nil if there is no such program, or it may not be asked in this run.
func newApprovalCommand(p *programs.Set, r *reports, describe func(exec.Question) exec.Prompt) *approvalCommand {
	if !p.Settings.Approval.Command.IsSet() || p.Settings.Globals.NonInteractive || process.InsideTool(p.Environ) {
		return nil
	}
	return &approvalCommand{p, r, describe}
}

// answer asks the program. Anything but a valid answer is no.
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
	if command.Origin.Scope != settings.ScopeFile { // it is for every project, and may run what it finds in its folder
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
