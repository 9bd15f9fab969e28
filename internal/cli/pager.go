package cli

import (
	"context"
	"strings"

	"github.com/toolreg/toolreg/internal/ui"
)

// Page collects the results of the run, so that a pager shows them if they are
// longer than the screen. It does nothing if stdout is not a terminal.
func (o *IO) Page() {
	if _, off := o.pager(); !off && o.OutTTY {
		o.pipe.Collect()
	}
}

// pager returns the command line of the user's pager; "" means the default. off reports
// whether paging is disabled.
func (o *IO) pager() (line string, off bool) {
	if o.noPager || o.getenv("TERM") == "dumb" {
		return "", true
	}
	for _, name := range []string{"TOOLREG_PAGER", "PAGER"} {
		if line, ok := o.vars.Lookup(name); ok {
			line = strings.TrimSpace(line)
			return line, line == "" || line == "cat"
		}
	}
	return "", false
}

// showPage shows the collected results, in the pager if the screen is too
// small. It calls leave before the pager reads the keyboard.
func (e *Env) showPage(ctx context.Context, leave func()) {
	page, collected := e.IO.pipe.Collected()
	if !collected {
		return
	}
	if _, rows := e.IO.size(); context.Cause(ctx) != nil || e.IO.rows(page) < rows {
		_, _ = e.IO.pipe.Write([]byte(page)) // the writer keeps the error
		return
	}
	leave()
	tty, err := e.Person.OpenTTY()
	if err == nil {
		defer tty.Close()
		err = tty.Page(context.WithoutCancel(ctx), page)
	}
	if err != nil {
		e.IO.Log.Info("no pager", "err", err)
		_, _ = e.IO.pipe.Write([]byte(page))
	}
}

// rows returns how many rows of the screen a text needs.
func (o *IO) rows(page string) int {
	n, width := 0, o.Width()
	for line := range strings.Lines(page) {
		n += 1 + max(ui.Width(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	return n
}
