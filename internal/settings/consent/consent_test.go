package consent

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/secret"
)

func TestMentionsFindsEveryVariable(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"$A${B}x", []string{"A", "B"}},
		{"${A:-${B:-$C}}", []string{"A", "B", "C"}},
		{"${A:-${b-}}$SECRET", []string{"A", "b", "SECRET"}}, // the malformed default is not evaluated if A is set
		{"${A:-${$SECRET}", []string{"A", "SECRET"}},
		{"$$A $$$B", []string{"B"}},
		{`run $\SECRET`, []string{"SECRET"}},
		{`run "$SECRET"`, []string{"SECRET"}},
		{"${ProgramFiles(x86)}", []string{"ProgramFiles(x86)", "ProgramFiles"}},
		{"env:SECRET", []string{"SECRET"}},
		{"file:$HOME/.netrc", []string{"file:$HOME/.netrc", "HOME"}},
		{"plain $5", nil},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, mentions(test.in)); diff != "" {
			t.Errorf("mentions(%q) (-want +got):\n%s", test.in, diff)
		}
	}
}

// FuzzMentions checks that every variable that is read was announced, regardless
// of which are set.
func FuzzMentions(f *testing.F) {
	for _, s := range []string{"$A", "${A:-${B:-$C}}", "env:A", "cmd:echo $\\A '$B'", "file:~/$X", "$A$$A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		announced := mentions(s)
		texts := []string{s}
		if words, err := process.Split(s); err == nil {
			texts = append(texts, words...)
		}
		for _, value := range []string{"", "v", "unset"} {
			lookup := func(name string) (string, bool) {
				if kind, _ := secret.Reference(s); kind == "" && !slices.Contains(announced, name) {
					t.Errorf("%q reads %s, announced %q", s, name, announced)
				}
				return value, value != "unset"
			}
			for _, text := range texts {
				_, _ = expand.Text(text, lookup) // only the variables that it reads matter
			}
		}
	})
}

// The question shows what decides what runs: variables with their values, the folder, and
// that a program finds more files by itself. Values of names that say so stay secret.
func TestDescribeShowsWhatDecides(t *testing.T) {
	known := func(s string) (string, error) { return strings.ReplaceAll(s, "$RUNNER", "npx"), nil }
	for _, tt := range []struct {
		program Program
		want    string
	}{
		{Program{Argv: []string{"srv"}, Cwd: "sub dir", Shown: []string{"NODE_OPTIONS=--require ./x.js --token ./y.js", "LD_PRELOAD=x.so", "API_KEY=hunter2", "GIT_ASKPASS=./steal"}},
			`p:1: k: srv (in "sub dir") (sets "NODE_OPTIONS=--require ./x.js --token ./y.js", LD_PRELOAD=x.so, API_KEY=***, GIT_ASKPASS=./steal)`},
		{Program{Shown: []string{"BASH_ENV=./x", "A=\x1b[2J"}}, `p:1: k: sets BASH_ENV=./x, "A=\x1b[2J"`},
		{Program{Env: []string{"BASH_ENV=./x"}}, ""},
		{Program{Argv: []string{"python3", "-m", "srv"}}, "p:1: k: python3 -m srv (python may run files of the project that are not covered)"},
		{Program{Argv: []string{"python3", "srv.py"}}, "p:1: k: python3 srv.py"},
		{Program{Argv: []string{"node", "--run", "srv"}}, "p:1: k: node --run srv (node may run files of the project that are not covered)"},
		{Program{Argv: []string{"node", "srv.js"}}, "p:1: k: node srv.js"},
		{Program{Argv: []string{"sh", "-c", "cd x && ./gradlew run"}}, `p:1: k: sh -c "cd x && ./gradlew run" (gradlew may run files of the project that are not covered)`},
		{Program{Argv: []string{"$RUNNER", "-y", "x"}}, "p:1: k: $RUNNER -y x (npx may run files of the project that are not covered)"},
		{Program{Argv: []string{"go", "run", "./cmd/srv"}}, "p:1: k: go run ./cmd/srv (go may run files of the project that are not covered)"},
		{Program{Argv: []string{"sh", "-c", "cat *"}}, `p:1: k: sh -c "cat *" (files that this code uses without naming them are not covered)`},
		{Program{Argv: []string{"cat", "x"}}, "p:1: k: cat x"},
	} {
		tt.program.Place, tt.program.Key = "p:1", "k"
		if got := strings.Join(Describe([]Program{tt.program}, known), "\n"); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}
