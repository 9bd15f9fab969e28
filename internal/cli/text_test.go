package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/ui"
)

func TestJSONColors(t *testing.T) {
	got := jsonText([]byte(`{"k":["v\"\\",-1.5,true,null,{}],"\u001b":"\x1b"}`), false)
	if !strings.Contains(got, `\x1b`) {
		t.Errorf("%q", got)
	}
	got = jsonText([]byte(`{"a":["x: \"y\\",-1.5,true,null]}`), true)
	for _, want := range []string{"\x1b[1;34m\"a\"\x1b[0m: ", "\x1b[32m\"x: \\\"y\\\\\"\x1b[0m", "\x1b[36m-1.5\x1b[0m", "\x1b[33mtrue", "\x1b[2mnull"} {
		if want = strings.ReplaceAll(want, `\\\\`, `\\`); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestTerminalWidth(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "0": 80, "-5": 80, "x": 80, "3": 20, "132": 132, "99999999999999999999": 80} {
		o := newIO(Streams{Out: ui.NewWriter(io.Discard), Err: ui.NewWriter(io.Discard)}, []string{"COLUMNS=" + columns})
		o.pipe = newPipeWriter(io.Discard, nil)
		if got := o.Width(); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", columns, got, want)
		}
	}
}

func TestColor(t *testing.T) {
	for _, tt := range []struct {
		flag, environ    string
		onTTY, elsewhere bool
	}{
		{"auto", "TERM=xterm", true, false},
		{"auto", "NO_COLOR=1", false, false},
		{"auto", "TERM=dumb", false, false},
		{"auto", "CLICOLOR_FORCE=1", true, true},
		{"auto", "CLICOLOR_FORCE=0", true, false},
		{"always", "NO_COLOR=1", true, true},
		{"never", "CLICOLOR_FORCE=1", false, false},
	} {
		o := newIO(Streams{Out: ui.NewWriter(io.Discard), Err: ui.NewWriter(io.Discard)}, []string{tt.environ})
		o.color = tt.flag
		if o.Color(true) != tt.onTTY || o.Color(false) != tt.elsewhere {
			t.Errorf("--color %s, %s: %v on a terminal, %v elsewhere", tt.flag, tt.environ, o.Color(true), o.Color(false))
		}
	}
}

// hasWord decides whether the name of the source or tool is printed before a diagnostic.
func TestHasWord(t *testing.T) {
	for _, tt := range []struct {
		message, name string
		word, quoted  bool
	}{
		{`the name is taken by builtin tool "run_shell_command"`, "command", false, false},
		{`registered as "command__dup"`, "command", false, false},
		{"the discovery command failed", "command", true, false},
		{`command: tool "is" is ignored`, "is", true, true},
		{"this is new", "is", true, false},
	} {
		if got := hasWord(tt.message, tt.name, true); got != tt.word {
			t.Errorf("%q in %q: %t", tt.name, tt.message, got)
		}
		if got := hasWord(tt.message, tt.name, false); got != tt.quoted {
			t.Errorf("%q delimited in %q: %t", tt.name, tt.message, got)
		}
	}
}
