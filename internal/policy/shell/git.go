package shell

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/lazy"
)

// gitSignature matches the fields of a format for which git checks signatures: those of
// commits, and those of refs.
var gitSignature = lazy.NewRegexp(`%[-+ ]?G|%\(\*?signature`)

// gitRuns returns what git runs because of its options and subcommands that run
// other programs or configure which programs run, and because of an alias that the
// line defines.
func gitRuns(read *reading, args []word) runs {
	r := read.runs()
	sub, rest := "", []word(nil)
	if read.rest < len(args) {
		sub, rest = args[read.rest].text, args[read.rest+1:]
	}
	for _, x := range read.options {
		switch {
		case x.name == "--config-env":
			r.dynamic = true
		case x.name == "-c":
			if name, value, _ := strings.Cut(x.value.text, "="); strings.EqualFold(name, "alias."+sub) {
				r.commands = append(r.commands, gitCommand(word{text: value, known: x.value.known}, rest))
			}
		case x.kind == kindRuns: // git appends the repository to some of them
			r.scripts = append(r.scripts, x.value.text+" "+joinWords(operands(rest)))
			// After an assignment, the repository becomes the program.
			r.dynamic = r.dynamic || strings.Contains(x.value.text, "=")
		}
	}
	inner := ""
	first := slices.IndexFunc(rest, func(w word) bool { return !strings.HasPrefix(w.text, "-") })
	if first >= 0 {
		inner = rest[first].text
	}
	switch {
	case sub == "bisect" && inner == "run":
		r.doubt, r.commands = "git bisect run runs another command", append(r.commands, rest[first+1:])
	case sub == "submodule" && inner == "foreach":
		script := rest[first+1:]
		for len(script) > 0 && strings.HasPrefix(script[0].text, "-") { // --recursive
			script = script[1:]
		}
		r.doubt, r.scripts = "git submodule foreach runs another command", append(r.scripts, joinWords(script))
	case sub == "filter-branch":
		r.doubt = "git filter-branch runs other commands"
		for _, w := range rest {
			r.scripts = append(r.scripts, w.text)
		}
	case sub == "config" && read.unlisted != "":
		all := operands(rest)
		for _, w := range all {
			r.scripts = append(r.scripts, strings.TrimPrefix(w.text, "!"))
			if strings.HasPrefix(strings.ToLower(all[0].text), "alias.") {
				r.commands = append(r.commands, gitCommand(w, nil))
			}
		}
	}
	for _, w := range rest {
		if line, ok := strings.CutPrefix(w.text, "ext::"); ok { // a URL of this kind is a command line
			r.doubt, r.scripts = "git may run "+w.text, append(r.scripts, line)
		}
		if gitSignature.Get().MatchString(w.text) {
			r.doubt = "git runs a program of its configuration to check signatures for " + w.text
		}
	}
	r.shell = POSIX
	return r
}

// mayBeAlias reports whether git may read a word as an alias of its configuration: it is not one of
// git's own commands, and the line does not define it.
func (t *table) mayBeAlias(args []word) bool {
	r := t.readArgs(args, true)
	return r.table == t && len(r.operands) > 0 && !slices.ContainsFunc(r.options, func(x optionValue) bool {
		return x.name == "-c" &&
			strings.HasPrefix(strings.ToLower(x.value.text), "alias."+strings.ToLower(r.operands[0].text)+"=")
	})
}

// gitCommand returns the git command that the value of an alias stands for.
func gitCommand(value word, rest []word) []word {
	words := []word{{text: "git", known: true}}
	for f := range strings.FieldsSeq(value.text) {
		words = append(words, word{text: strings.Trim(f, `"'`), known: value.known})
	}
	return append(words, rest...)
}
