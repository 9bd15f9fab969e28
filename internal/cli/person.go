package cli

import (
	"github.com/toolreg/toolreg/internal/process"
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

// AtKeyboard reports whether a person at a terminal runs the command, not a
// script or a tool.
func (e *Env) AtKeyboard() bool {
	return e.IO.OutTTY && e.IO.ErrTTY && !e.Globals.NonInteractive && !e.IO.Quiet && !e.IO.JSON && !process.InsideTool(e.Environ)
}
