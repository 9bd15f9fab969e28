package consent

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings/table"
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
				if kind, _ := table.Reference(s); kind == "" && !slices.Contains(announced, name) {
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
