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
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/terminal"
)

// asker asks the person at the terminal, one question at a time, whatever runs
// at once. It implements [session.Asker].
type asker struct {
	env *Env

	opening sync.Mutex
	ttys    []*terminal.TTY // to close at the end

	asking   sync.Mutex
	approved []string // diffs that a person was shown and agreed to
}

// nobody says why nobody is asked in this run; "" where the terminal decides.
func (a *asker) nobody() string {
	switch {
	case a.env.Globals.NonInteractive:
		return "--non-interactive is given"
	case session.Inside(a.env.Environ):
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
	return &inTurn{a, &terminal.Confirmer{TTY: tty}}
}

// close gives the terminal back.
func (a *asker) close() {
	a.opening.Lock()
	defer a.opening.Unlock()
	for _, tty := range a.ttys {
		_ = tty.Close() // nothing is lost
	}
}

// inTurn asks one question at a time.
type inTurn struct {
	*asker
	exec.Confirmer
}

// Confirm implements [exec.Confirmer].
func (c *inTurn) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := context.Cause(ctx); err != nil {
		return exec.Answer{}, err
	}
	answer, err := c.Confirmer.Confirm(ctx, q)
	if err == nil && answer.Choice != exec.No && q.Preview.Diff != "" {
		c.approved = append(c.approved, q.Preview.Diff)
	}
	return answer, err
}

// Approved reports whether a person agreed to exactly this diff in the run, so that
// they need not see it again.
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
		time.Sleep(withdrawnRest) // nobody waits for this but the next question
	}
	return ask.Answer{Action: actionOf(reply.Action), Content: reply.Content, Said: reply.Said}, err
}

// withdrawnRest is how long the terminal rests after a question was taken off it
// without an answer. The person may have been typing one, and what they type
// then must not answer the next question, which could come on purpose.
const withdrawnRest = 500 * time.Millisecond

// actionOf is an action in the words of the protocol.
func actionOf(a terminal.Action) string {
	switch a {
	case terminal.Accept:
		return "accept"
	case terminal.Cancel:
		return "cancel"
	}
	return "decline"
}

// OpenPerson is OpenTTY for a question that is not asked where the run is told to
// ask nobody.
func (e *Env) OpenPerson() (*terminal.TTY, error) {
	if why := e.asker.nobody(); why != "" {
		return nil, errors.New(why)
	}
	return e.OpenTTY()
}

// OpenTTY opens the terminal for questions. An error means that nobody is there
// to ask. Close it when done.
func (e *Env) OpenTTY() (*terminal.TTY, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return nil, err
	}
	tty.Color, tty.Before = e.Color(true), e.Screen.Hold
	tty.Editor = cmp.Or(e.Getenv("VISUAL"), e.Getenv("EDITOR"))
	off := false
	if tty.Pager, off = e.pager(); off {
		tty.Pager = "cat"
	}
	return tty, nil
}

// AskYes asks a question whose answers are yes and no. An error that is
// [terminal.ErrNoAnswer] is no answer, and not a no.
func AskYes(ctx context.Context, tty *terminal.TTY, q terminal.Query) (yes bool, err error) {
	q.Answers = []string{"yes", "no"}
	chosen, err := tty.Choose(ctx, q)
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	return err == nil && chosen.Word == q.Answers[0], err
}
