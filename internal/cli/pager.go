package cli

import (
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

// rows returns how many rows of the screen a text needs.
func (o *IO) rows(page string) int {
	n, width := 0, o.Width()
	for line := range strings.Lines(page) {
		n += 1 + max(ui.Width(strings.TrimSuffix(line, "\n"))-1, 0)/width
	}
	return n
}
