package shellline

import (
	"regexp"
	"strings"
	"sync"
)

// sedPlain matches scripts for sed that only read, print and change text. sed's
// e runs programs, and its w writes files.
var sedPlain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\s;]*(` + sedAddress + `?(\s*,\s*[+~]?` + sedAddress + `)?\s*!?\s*([{}pdqQ=DPNnGgHhxl]|[:btT]\s*\w*|[aicr][^\n]*|` +
		`[sy](` + sedTexts() + `)[gpiIm0-9]*)[\s;}]*)*$`)
})

const sedAddress = `([0-9]+(~[0-9]+)?|\$|/` + sedSlashed + `/I?)`

// sedSlashed is a pattern between slashes. Some versions of sed read a
// delimiter in brackets literally, others as the end, so brackets must not
// contain one.
const sedSlashed = `(\\.|\[\^?(\]|\[:[a-z]+:\]|\\.|[^]^\[/\\\n])(\[:[a-z]+:\]|\\.|[^]\[/\\\n])*\]|[^/\\\n[])*`

// sedTexts matches a pattern and a text in the same delimiters.
func sedTexts() string {
	var out []string
	for _, delimiter := range "/|#,@:;!_~%+=" {
		d := regexp.QuoteMeta(string(delimiter))
		out = append(out, d+strings.ReplaceAll(sedSlashed, "/", d)+d+`(\\.|[^`+d+`\\\n])*`+d)
	}
	return strings.Join(out, "|")
}

// sedScripts compares the scripts for sed with the plain ones.
func (r *runs) sedScripts(o *optionsRead, args []word) {
	var scripts []word
	for _, x := range o.options {
		switch x.name {
		case "-f", "--file":
			r.doubt = "a sed script in a file may run commands"
			return
		case "-e", "--expression":
			scripts = append(scripts, x.value)
		}
	}
	if all := operands(args); len(scripts) == 0 && len(all) > 0 {
		scripts = all[:1]
	}
	for _, w := range scripts {
		plain := sedPlain().MatchString(w.text)
		if w.known && plain {
			continue
		}
		r.doubt = "the sed script may run commands or write files"
		r.dynamic = r.dynamic || !plain // the script, if known only as a guess
	}
}
