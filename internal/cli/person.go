package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

// Person is the person who runs the command, if there is one. It asks one question at
// a time even if calls run concurrently, and implements [engine.Asker].
type Person struct {
	NonInteractive bool // nobody may be asked

	io *IO

	opening sync.Mutex
	ttys    []*ui.TTY // to close at the end

	asking   sync.Mutex
	approved []string // diffs that the person has approved
}

// nobody returns why no question may be asked in this run; "" if questions may be
// asked, provided that there is a terminal.
func (p *Person) nobody() string {
	switch {
	case p.NonInteractive:
		return "--non-interactive is given"
	case process.InsideTool(p.io.environ):
		return "inside a tool's run nobody can be asked"
	}
	return ""
}

// Confirmer implements [engine.Asker].
func (p *Person) Confirmer() exec.Confirmer {
	if p.nobody() != "" {
		return nil
	}
	tty, err := p.OpenTTY()
	if err != nil {
		p.io.Log.Debug("no terminal to ask on", "err", err)
		return nil
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	p.ttys = append(p.ttys, tty)
	return &inTurn{p, asking.Terminal{TTY: tty}}
}

func (p *Person) close() {
	p.opening.Lock()
	defer p.opening.Unlock()
	for _, tty := range p.ttys {
		_ = tty.Close() // nothing was buffered
	}
}

// inTurn is a Confirmer that asks one question at a time.
type inTurn struct {
	*Person
	terminal asking.Terminal
}

func (c *inTurn) Turn() func() {
	c.asking.Lock()
	return c.asking.Unlock
}

func (c *inTurn) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	if err := context.Cause(ctx); err != nil {
		return exec.Answer{}, err
	}
	answer, err := c.terminal.Confirm(ctx, q)
	if err == nil && answer.Choice != exec.No && q.Preview.Diff != "" {
		c.approved = append(c.approved, q.Preview.Diff)
	}
	return answer, err
}

// Approved reports whether a person approved exactly this diff in this run, so
// that it need not be shown again.
func (p *Person) Approved(diff string) bool {
	p.asking.Lock()
	defer p.asking.Unlock()
	return slices.Contains(p.approved, diff)
}

// Elicit implements [engine.Asker].
func (p *Person) Elicit(ctx context.Context, q ask.Elicitation) (ask.Answer, error) {
	declined := ask.Answer{Action: ask.Decline}
	if why := p.nobody(); why != "" {
		return declined, &engine.NobodyError{Reason: why}
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	if err := context.Cause(ctx); err != nil {
		return declined, err
	}
	tty, err := p.OpenTTY()
	if err != nil {
		return declined, &engine.NobodyError{Reason: "nobody can be asked"}
	}
	defer tty.Close()
	terminal := asking.Terminal{TTY: tty, Open: ui.Browser{Environ: p.io.environ}.Open}
	answer, err := terminal.Elicit(ctx, q)
	if context.Cause(ctx) != nil {
		time.Sleep(withdrawnRest) // only the next question waits for this
	}
	return answer, err
}

// withdrawnRest is the pause after a question was removed from the terminal without an
// answer. The person may still be typing, and that must not answer the next question,
// which a server could send at this moment on purpose.
const withdrawnRest = 500 * time.Millisecond

// Open is like OpenTTY, but fails if no questions may be asked in this run.
func (p *Person) Open() (*ui.TTY, error) {
	if why := p.nobody(); why != "" {
		return nil, errors.New(why)
	}
	return p.OpenTTY()
}

// OpenTTY opens the terminal for questions. An error means that nobody can be
// asked. Close it when done.
func (p *Person) OpenTTY() (*ui.TTY, error) {
	tty, err := ui.OpenTTY()
	if err != nil {
		return nil, err
	}
	tty.Color, tty.Before = p.io.Color(true), p.io.Screen.Hold
	tty.Editor = cmp.Or(p.io.vars.Get("VISUAL"), p.io.vars.Get("EDITOR"))
	off := false
	if tty.Pager, off = p.io.pager(); off {
		tty.Pager = "cat"
	}
	return tty, nil
}

// Require is [Person.Open] with the error of a command that needs the terminal.
func (p *Person) Require(missing error) (*ui.TTY, error) {
	tty, err := p.Open()
	if err != nil {
		return nil, missing
	}
	return tty, nil
}

// AtKeyboard reports whether a person runs the command at a terminal, and not a script or a tool.
func (p *Person) AtKeyboard() bool {
	return p.io.OutTTY && p.io.ErrTTY && !p.NonInteractive &&
		!p.io.Quiet && !p.io.JSON && !process.InsideTool(p.io.environ)
}

// fullScreen reports whether a person is at a terminal that supports
// full-screen output.
func (p *Person) fullScreen() bool {
	name := p.io.vars.Get("TERM")
	return ui.HasFull && p.io.InTTY && p.io.OutTTY && p.io.ErrTTY &&
		name != "" && name != "dumb" && !p.io.JSON && p.nobody() == ""
}

// AskYes asks a question whose answers are yes and no. No answer is no.
func AskYes(ctx context.Context, tty *ui.TTY, q ui.Query) (yes bool, err error) {
	if yes, err = askYes(ctx, tty, q); errors.Is(err, ui.ErrNoAnswer) {
		err = nil
	}
	return yes, err
}

// askYes is [AskYes] with the error [ui.ErrNoAnswer] if there was no answer.
func askYes(ctx context.Context, tty *ui.TTY, q ui.Query) (yes bool, err error) {
	q.Answers = []string{"yes", "no"}
	chosen, err := tty.Choose(ctx, q)
	if cause := context.Cause(ctx); cause != nil {
		return false, cause
	}
	return err == nil && chosen.Word == q.Answers[0], err
}

// AskToWrite asks whether to write what a question shows. A no is an error.
func AskToWrite(ctx context.Context, tty *ui.TTY, q ui.Query) error {
	yes, err := AskYes(ctx, tty, q)
	if err == nil && !yes {
		err = fmt.Errorf("%w: you said no; nothing was written", registry.ErrDenied)
	}
	return err
}

// NoTerminal returns the error for a command, such as "settings edit", that needs a terminal where there is none.
// instead says what to do without one.
func NoTerminal(command, instead string) error {
	return &registry.Failure{Text: command + " needs a terminal", Help: instead, Kind: registry.ErrNeedsConfirmation}
}
