package shell

import (
	"regexp"
	"strings"

	"github.com/toolreg/toolreg/internal/lazy"
)

// readCommand reads the arguments of a program that runs no other command, and
// checks its scripts.
func (t *table) readCommand(args []word) reading {
	if strings.HasSuffix(t.path, "tar") {
		args = t.dashed(args)
	}
	r := t.readArgs(args, false)
	switch r.table.attrs["script"] {
	case "sed":
		r.sedScripts()
	case "awk":
		r.awkScripts()
	}
	return r
}

// sedPlain matches sed scripts that only read, print and change text. Other
// scripts can run programs (e) and write files (w). Each command must end at a
// place where all versions of sed see its end, because text after it could
// otherwise hide in the argument of a command a, i, c or r.
var sedPlain = lazy.New(compileSedPlain)

func compileSedPlain() *regexp.Regexp {
	return regexp.MustCompile(`^[\s;]*(` + sedAddress + `?(\s*,\s*[+~]?` + sedAddress +
		`)?\s*!?\s*(\{|[}pdqQ=DPNnGgHhxl]` + sedEnd + `|[:btT][ \t]*\w*[ \t]*([;\n]|$)|[aicr][^\n]*|` +
		`[sy](` + sedTexts() + `)[gpiIm0-9]*` + sedEnd + `)[\s;]*)*$`)
}

const sedEnd = `([ \t;]*\})*[ \t]*([;\n]|$)`

const sedAddress = `([0-9]+(~[0-9]+)?|\$|/` + sedSlashed + `/I?)`

// sedSlashed matches a pattern between slashes. Brackets must not contain a slash,
// because it ends the pattern in some versions of sed and not in others.
const sedSlashed = `(\\.|\[\^?(\]|\[:[a-z]+:\]|\\.|[^]^\[/\\\n])(\[:[a-z]+:\]|\\.|[^]\[/\\\n])*\]|[^/\\\n[])*`

// sedTexts matches a pattern and its replacement, with the same delimiter around both.
func sedTexts() string {
	var out []string
	for _, delimiter := range "/|#,@:;!_~%+=" {
		d := regexp.QuoteMeta(string(delimiter))
		out = append(out, d+strings.ReplaceAll(sedSlashed, "/", d)+d+`(\\.|[^`+d+`\\\n])*`+d)
	}
	return strings.Join(out, "|")
}

// sedScripts adds a doubt if a script for sed may run programs or write files.
func (r *reading) sedScripts() {
	for _, w := range r.scripts() {
		plain := sedPlain.Get().MatchString(w.text)
		if !w.known || !plain {
			r.doubt("the sed script may run commands or write files")
		}
		r.dynamic = r.dynamic || !plain // a harmless script that is only a guess is a doubt, but not dynamic
	}
}

// awkActs matches awk scripts that may run programs, write files, use the network
// or load other scripts. It also matches some harmless ones.
var awkActs = lazy.NewRegexp(`(?s)system|extension|@|/inet|\\\r?\n|print.*[|>]|\|.*getline`)

// awkScripts adds a doubt if awk may do more than read and print text.
func (r *reading) awkScripts() {
	for _, w := range r.scripts() {
		if !w.known || awkActs.Get().MatchString(strings.ReplaceAll(w.text, "||", "")) {
			r.doubt("the awk script may run commands or write files")
		}
	}
}
