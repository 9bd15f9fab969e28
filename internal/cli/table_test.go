package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/terminal"
)

func TestTableFitsTheScreen(t *testing.T) {
	tab := &Table{Header: []string{"NAME", "SOURCE", "STATE", "DESCRIPTION"}}
	tab.Add("read_file", "builtin", "ok", "Reads a file, or a part of it, and says what was cut of it, at some length")
	tab.Add("検索ツール", "mcp:a-server-with-a-long-name", "ok", "日本語の説明はここにあり、とても長いので切られます 👩‍👩‍👧")
	tab.Add("x", "y\tz", "", "a\x1b[31mb\u202e")
	for _, width := range []int{20, 25, 40, 60, 80, 200} {
		for i, l := range strings.Split(strings.TrimSuffix(tab.aligned(width), "\n"), "\n") {
			if w := terminal.Width(l); w > width {
				t.Errorf("width %d: row %d takes %d columns: %q", width, i, w, l)
			}
			if l != terminal.Line(l) && !strings.Contains(l, "👩") {
				t.Errorf("a terminal would act on %q", l)
			}
		}
	}
	want := `NAME        SOURCE             STATE  DESCRIPTION
read_file   builtin            ok     Reads a file, or …
検索ツール  mcp:a-server-wit…  ok     日本語の説明はこ…
x           y\tz                      a\x1b[31mb\u202e
`
	if diff := cmp.Diff(want, tab.aligned(56)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableLeavesSpareColumnsOut(t *testing.T) {
	for width, want := range map[int]string{
		80: "NAME  STATE      MS  ERROR",
		30: "NAME  STATE      ERROR",
		18: "NAME  ERROR", // STATE goes where there is nothing else
	} {
		tab := &Table{Header: []string{"NAME", "STATE", "MS", "ERROR"}, Spare: []string{"NONE", "MS", "STATE"}}
		tab.Add("a", "connected", "7", strings.Repeat("why ", 20))
		tab.fit(width)
		got, _, _ := strings.Cut(tab.aligned(width), "\n")
		if got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

func TestTerminalWidth(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "0": 80, "-5": 80, "x": 80, "3": 20, "132": 132, "99999999999999999999": 80} {
		e := newEnv("", Streams{Out: terminal.NewWriter(io.Discard), Err: terminal.NewWriter(io.Discard)}, []string{"COLUMNS=" + columns})
		e.pipe = &pipeWriter{w: io.Discard}
		if got := e.Width(); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", columns, got, want)
		}
	}
}
