package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A line that is too long, nested too deeply or contains too many scripts is refused. Up to the
// limit it is analyzed, and a program at its end is found.
func TestLimitsOfAnalysis(t *testing.T) {
	scripts := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "eval a%d;", i)
		}
		return b.String()
	}
	values := func(program string) func(n int) string {
		return func(n int) string {
			return program + " '--x=" + strings.Repeat("=", 63) + strings.Repeat(" ", n) + "rm'"
		}
	}
	for name, tt := range map[string]struct {
		line func(n int) string
		most int
	}{
		"length":    {func(n int) string { return strings.Repeat(" ", n-len("rm")) + "rm" }, maxCommandLine},
		"nesting":   {func(n int) string { return strings.Repeat("eval ", n) + "rm" }, maxNesting},
		"depth":     {func(n int) string { return strings.Repeat("nice ", n) + "rm" }, maxNesting},
		"evaluated": {func(n int) string { return "x='$(" + strings.Repeat("eval ", n) + "rm)'; ((x))" }, maxNesting - 1},
		"variables": {func(n int) string { return strings.Repeat("PAGER=", n) + "rm" }, maxNesting},
		"wrappers":  {func(n int) string { return strings.Repeat("nice ls;", n-1) + "nice rm" }, maxInner},
		"words":     {func(n int) string { return "nice -Z " + strings.Repeat("a ", n-1) + "rm" }, 1024},
		"values":    {values("nice"), maxInnerWords/64 - 34},
		"runner":    {values("uv run"), maxInnerWords/64 - 34},
		"splits":    {func(n int) string { return "env " + strings.Repeat("-S a ", n) + "rm " + strings.Repeat("x", 8000) }, 64},
		"parens":    {func(n int) string { return "rm; " + strings.Repeat("(", n) }, maxParens - 1},
		"scripts":   {func(n int) string { return scripts(n-2) + "eval rm" }, maxInner}, // besides the line itself
	} {
		for n, want := range map[int]bool{tt.most: false, tt.most + 1: true} {
			commands := Read(Bash, tt.line(n), "").Commands
			refused := slices.ContainsFunc(commands, func(c Command) bool { return c.Refused })
			found := slices.ContainsFunc(commands, func(c Command) bool { return c.Names("rm") == Yes })
			if refused != want || !refused && !found {
				t.Errorf("%s %d: refused %t, found %t", name, n, refused, found)
			}
		}
	}
}

// The texts of parts are shortened, and values of env are not read, where that would take far more than the line.
func TestLongLines(t *testing.T) {
	var line strings.Builder
	for i := range 11000 {
		fmt.Fprintf(&line, "A%05d=b ", i)
	}
	shown := 0
	for _, c := range Read(Bash, line.String(), "").Commands {
		shown += len(c.Text)
	}
	if shown > 3*maxInnerWords {
		t.Errorf("%d bytes of texts", shown)
	}
	commands := Read(Bash, "env "+strings.Repeat("-S "+strings.Repeat("a", 30)+" ", 250), "").Commands
	if !slices.ContainsFunc(commands, func(c Command) bool { return c.Refused }) {
		t.Error("values of env were read")
	}
	l := Read(Bash, "find "+strings.Repeat("a ", 50)+strings.Repeat("-name b ", 50)+"-delete", "")
	if len(l.Trees) > maxInner || l.Commands[0].Unclear == "" {
		t.Errorf("%d files that find deletes", len(l.Trees))
	}
}

// Of a line in another grammar the first word of each piece counts as a program.
func TestLineInAnotherGrammar(t *testing.T) {
	var got []string
	for _, c := range Read("fish", "rm x; 'ls' y | ;\tmake (echo \"a\")", "").Commands {
		got = append(got, fmt.Sprintf("%s|%s|%t", c.Root(), c.Text, c.Unread))
	}
	want := []string{"rm|rm x|false", "ls|ls y|false", "make|make|false", "echo|echo a|false", "|rm x; 'ls' y | ;\tmake (echo \"a\")|true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
