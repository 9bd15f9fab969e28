package cli

import (
	"bytes"
	"context"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/terminal"
)

// Page keeps the results of the run back, for a pager to show them where they are
// longer than the screen. It does nothing where stdout is no terminal.
func (e *Env) Page() {
	if _, off := e.pager(); !off && e.OutTTY && e.pipe.page == nil {
		e.pipe.page = &bytes.Buffer{}
	}
}

// pager is the command line of the person's pager; "" for the usual one. off is
// set where they want none.
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

// showPage shows what was kept back: in the pager where the screen is too small,
// else as any output. Before the pager has the keyboard it calls leave.
func (e *Env) showPage(ctx context.Context, leave func()) {
	if e.pipe.page == nil {
		return
	}
	page := e.pipe.page.String()
	e.pipe.page = nil
	if _, rows := e.size(); context.Cause(ctx) != nil || e.rows(page) < rows {
		_, _ = e.pipe.Write([]byte(page)) // which keeps the error
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

// rows is how many rows of the screen a text takes.
func (e *Env) rows(page string) int {
	n, width := 0, e.Width()
	for line := range strings.Lines(page) {
		n += 1 + max(terminal.Width(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	return n
}
