package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// NoTerminalError reports that a command needs a terminal and there is none. It
// matches [registry.ErrNeedsConfirmation].
type NoTerminalError struct {
	What    string // the command, such as "settings edit"
	Instead string // what to do without one
}

func (e *NoTerminalError) Error() string { return e.What + " needs a terminal" }

// Hint says what to do.
func (e *NoTerminalError) Hint() string { return e.Instead }

// Is reports whether target is [registry.ErrNeedsConfirmation].
func (e *NoTerminalError) Is(target error) bool { return target == registry.ErrNeedsConfirmation }

// PersonTTY opens the terminal of the person who runs the command; missing is
// the error if there is none or nobody may be asked.
func (e *Env) PersonTTY(missing *NoTerminalError) (*terminal.TTY, error) {
	if e.Globals.NonInteractive {
		return nil, missing
	}
	tty, err := e.OpenTTY()
	if err != nil {
		return nil, missing
	}
	return tty, nil
}

// EditText opens the person's editor on a text until check accepts it or the
// person gives up, which is a [registry.ErrDenied].
func EditText(ctx context.Context, tty *terminal.TTY, name, text string, check func(text string) error) (string, error) {
	for {
		edited, err := tty.Edit(ctx, name, text)
		if err != nil {
			return "", err
		}
		mistake := check(edited)
		if mistake == nil {
			return edited, nil
		}
		again, err := AskYes(ctx, tty, terminal.Query{Text: "\n" + terminal.Visible(mistake.Error()) + "\n\n", Question: "Edit it again?"})
		if err != nil && !errors.Is(err, terminal.ErrNoAnswer) {
			return "", err
		}
		if !again {
			return "", fmt.Errorf("%w: nothing was written: the text still has mistakes", registry.ErrDenied)
		}
		text = edited
	}
}
