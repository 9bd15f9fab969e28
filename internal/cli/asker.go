package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/terminal"
)

// asker asks the person at the terminal, one question at a time even if calls
// run concurrently. It implements [session.Asker].
type asker struct {
	env *Env

	opening sync.Mutex
	ttys    []*terminal.TTY // to close at the end

	asking   sync.Mutex
	approved []string // diffs that the person has approved
}

// nobody returns why nobody can be asked in this run; "" if that depends on the
// terminal.
func (a *asker) nobody() string {
	switch {
	case a.env.Globals.NonInteractive:
		return "--non-interactive is given"
	case process.InsideTool(a.env.Environ):
		return "inside a tool's run nobody can be asked"
	}
	return ""
}

// Confirmer implements [session.Asker].
func (a *asker) Confirmer() exec.Confirmer {
	if a.nobody() != "" {
		return nil
	}
	tty, err := a.env.OpenTTY()
	if err != nil {
		a.env.Log.Debug("no terminal to ask on", "err", err)
		return nil
	}
	a.opening.Lock()
	defer a.opening.Unlock()
	a.ttys = append(a.ttys, tty)
	return &inTurn{a, terminal.Confirmer{TTY: tty}}
}

// close closes the terminal.
func (a *asker) close() {
	a.opening.Lock()
	defer a.opening.Unlock()
	for _, tty := range a.ttys {
		_ = tty.Close() // nothing was buffered
	}
}

// inTurn asks one question at a time.
type inTurn struct {
	*asker
	person terminal.Confirmer
}

// Turn implements [exec.Confirmer].
func (c *inTurn) Turn() func() {
	c.asking.Lock()
	return c.asking.Unlock
}

// Confirm implements [exec.Confirmer].
func (c *inTurn) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	if err := context.Cause(ctx); err != nil {
		return exec.Answer{}, err
	}
	answer, err := c.person.Confirm(ctx, q)
	if err == nil && answer.Choice != exec.No && q.Preview.Diff != "" {
		c.approved = append(c.approved, q.Preview.Diff)
	}
	return answer, err
}

// Approved reports whether a person approved exactly this diff in this run, so
// that it need not be shown again.
func (e *Env) Approved(diff string) bool {
	e.asker.asking.Lock()
	defer e.asker.asking.Unlock()
	return slices.Contains(e.asker.approved, diff)
}

// Elicit implements [session.Asker].
func (a *asker) Elicit(ctx context.Context, q ask.Elicitation) (ask.Answer, error) {
	declined := ask.Answer{Action: "decline"}
	if why := a.nobody(); why != "" {
		return declined, &session.NobodyError{Reason: why}
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	if err := context.Cause(ctx); err != nil {
		return declined, err
	}
	tty, err := a.env.OpenTTY()
	if err != nil {
		return declined, &session.NobodyError{Reason: "nobody can be asked"}
	}
	defer tty.Close()
	asker := terminal.Asker{TTY: tty, Open: terminal.Browser{Environ: a.env.Environ}.Open}
	reply, err := asker.Ask(ctx, terminal.Asked{Server: q.Server, During: q.During, Message: q.Message, Form: q.Form, URL: q.URL, Done: q.Done})
	if context.Cause(ctx) != nil {
		time.Sleep(withdrawnRest) // only the next question waits for this
	}
	return ask.Answer{Action: actionOf(reply.Action), Content: reply.Content, Said: reply.Said}, err
}

// withdrawnRest is the pause after a question was removed from the terminal
// without an answer. The person may still be typing, and what they type must
// not answer the next question, which a server could send on purpose.
const withdrawnRest = 500 * time.Millisecond

// actionOf returns an action in the words of the protocol.
func actionOf(a terminal.Action) string {
	switch a {
	case terminal.Accept:
		return "accept"
	case terminal.Cancel:
		return "cancel"
	}
	return "decline"
}

// OpenPerson is OpenTTY for questions that are not asked if nobody may be asked
// in this run.
func (e *Env) OpenPerson() (*terminal.TTY, error) {
	if why := e.asker.nobody(); why != "" {
		return nil, errors.New(why)
	}
	return e.OpenTTY()
}

// OpenTTY opens the terminal for questions. An error means that nobody can be
// asked. Close it when done.
func (e *Env) OpenTTY() (*terminal.TTY, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return nil, err
	}
	tty.Color, tty.Before = e.IO.Color(true), e.IO.Screen.Hold
	tty.Editor = cmp.Or(e.Getenv("VISUAL"), e.Getenv("EDITOR"))
	off := false
	if tty.Pager, off = e.IO.pager(); off {
		tty.Pager = "cat"
	}
	return tty, nil
}

// AskYes asks a question whose answers are yes and no. The error
// [terminal.ErrNoAnswer] means no answer rather than no.
func AskYes(ctx context.Context, tty *terminal.TTY, q terminal.Query) (yes bool, err error) {
	q.Answers = []string{"yes", "no"}
	chosen, err := tty.Choose(ctx, q)
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	return err == nil && chosen.Word == q.Answers[0], err
}
