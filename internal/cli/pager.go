package cli

import (
	"context"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/terminal"
)

// Page collects the results of the run, so that a pager shows them if they are
// longer than the screen. It does nothing if stdout is not a terminal.
func (e *Env) Page() {
	if _, off := e.pager(); !off && e.OutTTY {
		e.pipe.Collect()
	}
}

// pager returns the command line of the person's pager; "" for the default. off
// means that paging is disabled.
func (e *Env) pager() (line string, off bool) {
	if e.Globals.NoPager || e.Getenv("TERM") == "dumb" {
		return "", true
	}
	for _, name := range []string{"TOOLREG_PAGER", "PAGER"} {
		if line, ok := expand.Find(e.Environ, name); ok {
			line = strings.TrimSpace(line)
			return line, line == "" || line == "cat"
		}
	}
	return "", false
}

// showPage shows the collected results, in the pager if the screen is too
// small. It calls leave before the pager reads the keyboard.
func (e *Env) showPage(ctx context.Context, leave func()) {
	page, collected := e.pipe.Collected()
	if !collected {
		return
	}
	if _, rows := e.size(); context.Cause(ctx) != nil || e.rows(page) < rows {
		_, _ = e.pipe.Write([]byte(page)) // the writer keeps the error
		return
	}
	leave()
	tty, err := e.OpenTTY()
	if err == nil {
		defer tty.Close()
		err = tty.Page(context.WithoutCancel(ctx), page)
	}
	if err != nil {
		e.Log.Info("no pager", "err", err)
		_, _ = e.pipe.Write([]byte(page))
	}
}

// rows returns how many rows of the screen a text needs.
func (e *Env) rows(page string) int {
	n, width := 0, e.Width()
	for line := range strings.Lines(page) {
		n += 1 + max(terminal.Width(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	return n
}
