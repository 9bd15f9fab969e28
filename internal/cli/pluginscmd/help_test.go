package pluginscmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelpTextsBecomeParams(t *testing.T) {
	for _, c := range []struct{ name, help, want string }{
		{"argparse", `usage: count.py [-h] [-n N] [--format {json,text}] [-v]
                file

Count the words.

positional arguments:
  file                  the file

options:
  -h, --help            show this help message and exit
  -n N, --number N      only files with
                        at least N
  --format {json,text}  how
  -v, --verbose
                        say more
`, `Count the words.
number integer [] "only files with" --number={{number}}
format string [json text] "how" --format={{format}}
verbose string [--verbose] "say more" {{verbose}}
file string [] "" {{file}} required
`},
		{"click", "Usage: prog [OPTIONS] NAME [DIR]\n\n  Greets.\n\nOptions:\n  --count INTEGER  Number.\n  --help           Show this message and exit.\n", `
count integer [] "Number." --count={{count}}
name string [] "" {{name}} required
dir string [] "" {{dir}}
`},
		{"GNU", "Usage: head [OPTION]... [FILE]...\nPrint the first lines.\n\n  -c, --bytes=[-]NUM       print bytes\n  -q, --quiet              never print\n  -z                       zero\n", `Print the first lines.
bytes string [] "print bytes" --bytes={{bytes}}
quiet string [--quiet] "never print" {{quiet}}
z string [-z] "zero" {{z}}
file string [] "" {{file}}
`},
		{"short with a value", "usage: x\n  -n N  how many\n", "\nn integer [] \"how many\" -n{{n}}\n"},
		{"no help", "\x00\x1b[31mdone\r\n--\n - -\n", "\x00\x1b[31mdone\n"},
		{"nothing", "", "\n"},
	} {
		h := readHelp(c.help)
		var b strings.Builder
		fmt.Fprintln(&b, h.description)
		for _, p := range h.params {
			fmt.Fprintf(&b, "%s %s %v %q %s", p.name, p.kind, p.values, p.description, p.arg)
			if p.required {
				b.WriteString(" required")
			}
			b.WriteString("\n")
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestHelpOfManyOptionsIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "  --option%d X  %s\n", i, strings.Repeat("é", 1000))
	}
	h := readHelp(b.String())
	if len(h.params) != maxHelpParams || len(h.params[0].description) > maxHelpDescription {
		t.Errorf("%d params, a description of %d bytes", len(h.params), len(h.params[0].description))
	}
}
