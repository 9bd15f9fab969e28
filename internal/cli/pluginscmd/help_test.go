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
number integer [] "only files with at least N" --number={{number}}
format string [json text] "how" --format={{format}}
verbose boolean [] "say more" --verbose{{?verbose}}
file string [] "the file" {{file}} required
`},
		{"click", "Usage: prog [OPTIONS] NAME [DIR]\n\n  Greets.\n\nOptions:\n  --count INTEGER  Number.\n  --help           Show this message and exit.\n", `Greets.
count integer [] "Number." --count={{count}}
name string [] "" {{name}} required
dir string [] "" {{dir}}
`},
		{"GNU", "Usage: head [OPTION]... [FILE]...\nPrint the first lines.\n\n  -c, --bytes=[-]NUM       print bytes\n  -q, --quiet              never print\n  -z                       zero\n", `Print the first lines.
bytes string [] "print bytes" --bytes={{bytes}}
quiet boolean [] "never print" --quiet{{?quiet}}
z boolean [] "zero" -z{{?z}}
file string [] "" {{file}}
`},
		{"argparse with a choice", `usage: site [-h] [--port PORT] [--tags TAG [TAG ...]]
            {build,serve} [target]

Build the site or serve it.

positional arguments:
  {build,serve}         what to do
  target                the folder to write
                        (default: public)

options:
  -h, --help            show this help message and exit
  --port PORT           port to listen on (default: 8080)
  --tags TAG [TAG ...]  only these tags
`, `Build the site or serve it.
port string [] "port to listen on (default: 8080)" --port={{port}}
tags string [] "only these tags" --tags={{tags}}
choice string [build serve] "" {{choice}} required
target string [] "the folder to write (default: public)" {{target}}
`},
		{"click with types", `Usage: resize [OPTIONS] SOURCE...

  Resize images, in place
  or into a folder.

  A second paragraph.

Options:
  --width INTEGER RANGE    Width in pixels.  [1<=x<=9999; required]
  --scale FLOAT            Factor.  [default: 1.0]
  --format [png|jpeg]      Format of the
                           result.
  --to PATH                Folder.  [required]
  --strip / --keep         Remove metadata.
  -v, --verbose            Say more.
  --help                   Show this message and exit.
`, `Resize images, in place or into a folder.
width integer [] "Width in pixels. [1<=x<=9999; required]" --width={{width}}
scale number [] "Factor. [default: 1.0]" --scale={{scale}}
format string [png jpeg] "Format of the result." --format={{format}}
to string [] "Folder." --to={{to}} required
strip boolean [] "Remove metadata." --strip{{?strip}}
keep boolean [] "The opposite of --strip." --keep{{?keep}}
verbose boolean [] "Say more." --verbose{{?verbose}}
source string [] "" {{source}} required
`},
		{"cobra", `Copies files to a bucket.

Usage:
  bucket FILE [flags]
  bucket [command]

Available Commands:
  status      Show what was copied

Flags:
  -c, --count int          how many at once (default 4)
      --dry-run            only say what would be copied
  -h, --help               help for bucket
      --ratio float        share of the bandwidth
  -t, --tag strings        tags, with commas
      --wait duration      time limit

Use "bucket [command] --help" for more information about a command.
`, `Copies files to a bucket.
count integer [] "how many at once (default 4)" --count={{count}}
dry_run boolean [] "only say what would be copied" --dry-run{{?dry_run}}
ratio number [] "share of the bandwidth" --ratio={{ratio}}
tag string [] "tags, with commas" --tag={{tag}}
wait string [] "time limit" --wait={{wait}}
file string [] "" {{file}} required
`},
		{"clap", `Counts lines

Usage: lines [OPTIONS] <FILE> [DIR]

Arguments:
  <FILE>  The file to count
  [DIR]   Where it is [default: .]

Options:
  -n, --number <NUMBER>  At most this many [default: 3]
  -f, --format <FORMAT>  How to print [default: text] [possible values: text, json]
      --color[=<WHEN>]   Use colors [possible values: auto, always]
  -v, --verbose...       Say more
  -h, --help             Print help
  -V, --version          Print version
`, `Counts lines
number integer [] "At most this many [default: 3]" --number={{number}}
format string [text json] "How to print [default: text]" --format={{format}}
color string [auto always] "Use colors" --color={{color}}
verbose boolean [] "Say more" --verbose{{?verbose}}
file string [] "The file to count" {{file}} required
dir string [] "Where it is [default: .]" {{dir}}
`},
		{"clap, long", "Counts lines\n\nUsage: lines [OPTIONS]\n\nOptions:\n  -n, --number <N>\n          At most this many\n          \n          [default: 3]\n\n  -q, --quiet\n          Print nothing\n\n  -h, --help\n          Print help\n", `Counts lines
number integer [] "At most this many [default: 3]" --number={{number}}
quiet boolean [] "Print nothing" --quiet{{?quiet}}
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
