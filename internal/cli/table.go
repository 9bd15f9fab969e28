package cli

import (
	"io"

	"github.com/toolreg/toolreg/internal/columns"
)

// PrintTable prints a table on stdout: in columns on a terminal, else with tabs.
func (e *Env) PrintTable(t *columns.Table) error {
	if e.OutTTY {
		return e.Out.WriteStyled(t.Text(e.Width(), e.Color(true)))
	}
	_, err := io.WriteString(e.Out, t.Tabbed())
	return err
}

// PrintCounted is PrintTable with the number of rows below it on a terminal. noun
// is what a row is, such as "approval".
func (e *Env) PrintCounted(t *columns.Table, noun string) error {
	if len(t.Rows) == 0 && e.OutTTY {
		e.Notef("no %ss", noun)
		return nil
	}
	e.Summary("%s", Counted(len(t.Rows), noun))
	return e.PrintTable(t)
}
