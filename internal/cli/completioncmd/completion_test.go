package completioncmd

import (
	"slices"
	"testing"
)

// TestReplies checks what bash inserts at the cursor. Bash replaces the text after the
// last character that breaks words.
func TestReplies(t *testing.T) {
	const breaks = " \t\n\"'@><=;|&(:"
	for typed, tt := range map[string]struct {
		word string
		want []string
	}{
		"t call gr":           {"grep", []string{"grep \n"}},
		"t call x mo":         {"mode=", []string{"mode=\n"}},
		"t call x mode=":      {"mode=a b", []string{"a\\ b \n"}},
		"t call x mode=r":     {"mode=r$(id)", []string{"r\\$\\(id\\) \n"}},
		"t call x mode=\"a":   {"mode=a b", []string{"a b\n"}},
		"t call x mode=\"r":   {"mode=r$(id)", []string{}},
		"t call x mode='i":    {"mode=it's", []string{}},
		"t call x f=@my":      {"f=@my notes", []string{"@my\\ notes \n"}},
		"t schema --format=o": {"--format=openai", []string{"openai \n"}},
		"t call x 'mode'=a":   {"mode=a", nil},
		"t call gl":           {"grep", []string{}},
	} {
		got := parseLine(typed, breaks).replies([]candidate{{tt.word, "text"}}, true, 80)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", typed, got, tt.want)
		}
	}
}
