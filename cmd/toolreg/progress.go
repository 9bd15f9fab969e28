package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// newStatus returns the live lines on stderr, which show on a terminal alone, and
// on none that cannot move the cursor.
func (a *app) newStatus() *terminal.Status {
	o := terminal.StatusOptions{}
	kind, _ := lookupEnv(a.environ, "TERM")
	if a.errTTY && kind != "dumb" && !a.globals.Quiet {
		o.Out = a.err
		o.Size = sizeOf(a.err)
	}
	return terminal.NewStatus(o)
}

func sizeOf(w io.Writer) func() (int, int) {
	return func() (int, int) {
		if f, ok := w.(*os.File); ok {
			if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
				return columns, rows
			}
		}
		return 80, 24
	}
}

// watch shows the state of each server on the live lines until done is called.
func (a *app) watch() (done func()) {
	status := a.newStatus()
	a.status.Store(status)
	return func() {
		a.status.Store(nil)
		status.Close()
	}
}

// serverState is told of each step of a server.
func (a *app) serverState(server string, state mcpclient.State) {
	status := a.status.Load()
	if status == nil {
		return
	}
	switch state {
	case mcpclient.StateConnecting, mcpclient.StateListing:
		status.Set(server, string(state))
	default:
		status.Set(server, "")
	}
}

// progress shows the notes of a running call on one live line.
func (a *app) progress(tool string) (show func(registry.Progress), done func()) {
	status := a.newStatus()
	a.status.Store(status)
	return func(p registry.Progress) { status.Progress(tool, p.Done, p.Total, p.Message) }, func() {
		a.status.Store(nil)
		status.Close()
	}
}

// pauseStatus takes the live lines off the screen while a question stands there.
func (a *app) pauseStatus() (resume func()) {
	if status := a.status.Load(); status != nil {
		return status.Pause()
	}
	return nil
}
