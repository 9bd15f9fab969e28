package ui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableFitsTheScreen(t *testing.T) {
	tab := &Table{Header: []string{"NAME", "ORIGIN", "STATE", "DESCRIPTION"}}
	tab.Add("read_file", "builtin", "ok", "Reads a file, or a part of it, and says what was cut of it, at some length")
	tab.Add("検索ツール", "mcp:a-server-with-a-long-name", "ok", "日本語の説明はここにあり、とても長いので切られます 👩‍👩‍👧")
	tab.Add("x", "y\tz", "", "a\x1b[31mb\u202e")
	for _, width := range []int{20, 25, 40, 60, 80, 200} {
		for i, l := range strings.Split(strings.TrimSuffix(tab.Text(width, false), "\n"), "\n") {
			if w := Width(l); w > width {
				t.Errorf("width %d: row %d takes %d columns: %q", width, i, w, l)
			}
			if l != Line(l) && !strings.Contains(l, "👩") {
				t.Errorf("control characters in %q", l)
			}
		}
	}
	want := `NAME        ORIGIN             STATE  DESCRIPTION
read_file   builtin            ok     Reads a file, or …
検索ツール  mcp:a-server-wit…  ok     日本語の説明はこ…
x           y\tz                      a\x1b[31mb\u202e
`
	if diff := cmp.Diff(want, tab.Text(56, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableOmitsSpareColumns(t *testing.T) {
	for width, want := range map[int]string{
		80: "NAME  STATE      MS  ERROR",
		30: "NAME  STATE      ERROR",
		18: "NAME  ERROR", // STATE is omitted last
	} {
		tab := &Table{Header: []string{"NAME", "STATE", "MS", "ERROR"}, Spare: []string{"NONE", "MS", "STATE"}}
		tab.Add("a", "connected", "7", strings.Repeat("why ", 20))
		got, _, _ := strings.Cut(tab.Text(width, false), "\n")
		if got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}

// In a pipe, too, colors are those of the table on a terminal if they are wanted.
func TestTableInAPipe(t *testing.T) {
	tab := &Table{Header: []string{"NAME", "STATE"}}
	tab.Add("a", "failed", "3s")
	if got := tab.Tabbed(false); got != "a\tfailed\t3s\n" {
		t.Errorf("got %q", got)
	}
	if got, want := tab.Tabbed(true), Paint([]Span{{Text: "a", Style: Bold}, {Text: "\t"}, {Text: "failed", Style: Red}, {Text: "\t3s"}}, true)+"\n"; got != want || !strings.Contains(got, "\x1b[") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A column of addresses is cut rather than others omitted for one long address, which is shown whole below.
func TestTableKeepsColumnsBesideALongAddress(t *testing.T) {
	long := "file:///" + strings.Repeat("x", 100)
	tab := &Table{Header: []string{"SERVER", "KIND", "URI", "TYPE", "NAME"}, Whole: []string{"URI"}, Spare: []string{"TYPE", "NAME"}}
	tab.Add("s", "resource", "file:///a", "text/plain", "a")
	tab.Add("s", "resource", long, "text/plain", "x")
	got := tab.Text(72, false)
	if header, _, _ := strings.Cut(got, "\n"); strings.Join(strings.Fields(header), " ") != "SERVER KIND URI TYPE NAME" {
		t.Errorf("header %q", header)
	}
	if _, below, _ := strings.Cut(got, "\n\n"); !strings.Contains(strings.ReplaceAll(below, "\n    ", ""), long) {
		t.Errorf("the address is not shown whole:\n%s", got)
	}
}

// Names, addresses and errors are never cut, whatever the width.
func TestTableCutsNoNames(t *testing.T) {
	tab := &Table{Header: []string{"NAME", "STATE", "TOOLS", "ERROR"}, Whole: []string{"ERROR"}}
	tab.Add("a_tool_with_quite_a_long_name", "failed", "0", "starting \"npx\": see https://example.com/a/rather/long/address/of/a/page")
	tab.Add("b", "ok", "12", "")
	want := `NAME                       STATE   TOOLS
a_tool_with_quite_a_long_name
                           failed  0
b                          ok      12

a_tool_with_quite_a_long_name:
    starting "npx": see
    https://example.com/a/rather/long/address/of/a/page
`
	if diff := cmp.Diff(want, tab.Text(40, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := tab.Text(200, false); strings.Count(got, "\n") != 3 || !strings.Contains(got, "0      starting") {
		t.Errorf("on a wide terminal all text must be in the table:\n%s", got)
	}
}

func TestTableColours(t *testing.T) {
	tab := &Table{Header: []string{"NAME", "STATE"}}
	tab.Add("a\x1b[31m", "failed")
	want := "\x1b[2mNAME\x1b[0m       \x1b[2mSTATE\x1b[0m\n\x1b[1ma\\x1b[31m\x1b[0m  \x1b[31mfailed\x1b[0m\n"
	if diff := cmp.Diff(want, tab.Text(80, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
