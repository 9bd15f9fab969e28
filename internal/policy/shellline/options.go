package shellline

import (
	"fmt"
	"slices"
	"strings"
)

// runs says what a program runs in turn.
type runs struct {
	doubt    string   // why no rule on commands covers it
	dynamic  bool     // what it runs is not known in advance
	rereads  string   // why shells may read the following text differently
	commands [][]word // commands among its arguments
	scripts  []string // texts that it gives to a shell
	shell    string   // the grammar of scripts
	writes   []string // files that its options name

	evaluates bool   // it evaluates the text of variables
	variables []word // NAME=VALUE for what it runs
}

// program describes the options with which a program runs other programs or
// writes files, and those that must be known to find them. Options are spelled
// as on a command line, "-o --output"; a letter matches inside a cluster too,
// and a long name matches its abbreviations.
type program struct {
	valued   string // take the next word as their value, or the rest of theirs
	attached string // take a value only in the same word
	runs     string // run their value, or what their value sets
	acts     string // run something or change a file, without a value
	writes   string // write the file that is their value
	operands int    // above 0: more operands than these name a file that is written

	wraps   bool   // a command follows the options
	flags   string // take no value; unknown options of a wrapper make the start of its command ambiguous
	skip    int    // words before the command
	vague   bool   // any word after the options may be the start of a command, or a line for a shell
	assigns bool   // NAME=VALUE words may precede it
	shell   bool   // without a command a shell reads stdin
	extra   bool   // further words are added at run time
	silent  string // with these options nothing is run
	splits  string // options whose value is words of a command, as env reads them
	scripts string // options whose value is a line for a shell
}

// option is one option as a program would take it.
type option struct {
	name  string // as the table spells it
	value word
}

// optionsRead is the result of reading a program's arguments.
type optionsRead struct {
	program *program
	options []option
	rest    int    // where the operands begin, if they end the options
	number  int    // number of operands
	unknown string // a word that may be any option
	strange bool   // an option that the table does not know stands before rest

	variables []word // NAME=VALUE before rest
}

// read splits words into options and operands. With first set, the first
// operand ends the options, as in programs that run what follows.
func (p program) read(args []word, first bool) optionsRead {
	out := optionsRead{program: &p, rest: len(args)}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !a.known && !a.plainStart && out.unknown == "" {
			out.unknown = a.text
			if a.text == "" {
				out.unknown = "a word"
			}
		}
		switch {
		case a.text == "--":
			if first {
				for i++; i < len(args) && p.assigns && isAssignment(args[i].text); i++ {
					out.variables = append(out.variables, args[i])
				}
				out.rest = i
				return out
			}
			out.number += len(args) - i - 1
			return out
		case strings.HasPrefix(a.text, "--"):
			i += p.long(&out, args[i:])
		case strings.HasPrefix(a.text, "-") && (len(a.text) > 1 || has(p.flags, "-")):
			i += p.cluster(&out, args[i:])
		case first && p.assigns && isAssignment(a.text):
			out.variables = append(out.variables, a)
		case first:
			out.rest = i
			return out
		default:
			out.number++
		}
	}
	return out
}

// isAssignment reports whether env takes a word for one, whatever its name.
func isAssignment(text string) bool { return strings.Contains(text, "=") }

// long reads --name or --name=value, abbreviated or not, and returns how many
// of the following words are its value. An ambiguous name is taken as each
// option that it may stand for.
func (p *program) long(out *optionsRead, args []word) int {
	text := args[0].text
	name, value, attached := strings.Cut(text, "=")
	found, taken := false, 0
	for _, list := range []string{p.valued, p.runs, p.writes, p.splits, p.scripts} {
		for _, full := range strings.Fields(list) {
			if !strings.HasPrefix(full, "--") || !strings.HasPrefix(full, name) || name == "--" {
				continue
			}
			found = true
			v := word{text: value, known: args[0].known}
			if !attached && len(args) > 1 {
				v, taken = args[1], 1
			}
			out.options = append(out.options, option{full, v})
		}
	}
	for _, full := range strings.Fields(p.acts) {
		if strings.HasPrefix(full, "--") && strings.HasPrefix(full, name) {
			found = true
			out.options = append(out.options, option{name: full})
		}
	}
	if attached && found {
		return 0
	}
	known := slices.ContainsFunc(strings.Fields(p.flags+" "+p.attached+" "+p.silent), func(f string) bool { return strings.HasPrefix(f, name) })
	if has(p.silent, name) {
		out.options = append(out.options, option{name: name})
	}
	if has(p.flags+" "+p.attached, name) { // not an abbreviation of another
		return 0
	}
	out.strange = out.strange || !found && !known && !attached || found && known
	return taken
}

// cluster reads -abc and returns how many of the following words are its value.
func (p *program) cluster(out *optionsRead, args []word) int {
	text := args[0].text
	if name, value, attached := strings.Cut(text, "="); len(name) > 2 && has(p.runs+" "+p.writes, name) { // -exec, as Go spells it
		v := word{text: value, known: args[0].known}
		if !attached && len(args) > 1 {
			out.options = append(out.options, option{name, args[1]})
			return 1
		}
		out.options = append(out.options, option{name, v})
		return 0
	}
	for i := 1; i < len(text); i++ {
		letter := "-" + text[i:i+1]
		switch {
		case has(p.acts, letter), has(p.silent, letter):
			out.options = append(out.options, option{name: letter})
		case has(p.valued+" "+p.runs+" "+p.writes+" "+p.splits+" "+p.scripts, letter):
			v, taken := word{text: text[i+1:], known: args[0].known}, 0
			if v.text == "" && len(args) > 1 {
				v, taken = args[1], 1
			}
			out.options = append(out.options, option{letter, v})
			return taken
		case has(p.attached, letter):
			return 0
		case !has(p.flags, letter):
			out.strange = true
		}
	}
	return 0
}

// runs says what the options do.
func (o *optionsRead) runs(name string) runs {
	r := runs{shell: POSIX, variables: o.variables}
	p := o.program
	for _, x := range o.options {
		switch {
		case has(p.runs, x.name):
			r.doubt = fmt.Sprintf("%s %s may run another command", name, x.name)
			r.scripts = append(r.scripts, x.value.text)
			if _, value, ok := strings.Cut(x.value.text, "="); ok {
				r.scripts = append(r.scripts, strings.TrimPrefix(value, "!"))
			}
			r.dynamic = r.dynamic || !x.value.known || x.value.text == "" // what follows may take its place
		case has(p.acts, x.name):
			r.doubt = fmt.Sprintf("%s %s may run another command or change a file", name, x.name)
		case has(p.writes, x.name) && (!x.value.known || x.value.text != "/dev/null" && x.value.text != "-"):
			r.doubt = fmt.Sprintf("%s %s writes a file", name, x.name)
			if x.value.text != "" {
				r.writes = append(r.writes, x.value.text)
			}
		case has(p.splits, x.name):
			r.splits(x.value)
		case has(p.scripts, x.name):
			r.shell = Bash
			r.scripts = append(r.scripts, x.value.text)
			r.dynamic = r.dynamic || !x.value.known
		}
	}
	if r.doubt == "" && p.operands > 0 && o.number > p.operands {
		r.doubt = name + " writes a file"
	}
	if r.doubt == "" && o.unknown != "" {
		r.doubt = fmt.Sprintf("a word known only at run time may be an option of %s", name)
	}
	return r
}

// splits reads the value that env splits into words according to its own rules.
func (r *runs) splits(w word) {
	text := strings.NewReplacer(`\_`, " ", `\t`, " ", `\n`, " ", `\v`, " ", `\f`, " ", `\r`, " ", `\c`, " ", `"`, "", "'", "").Replace(w.text)
	command := []word{{text: "env", known: true}}
	for _, f := range strings.Fields(text) {
		command = append(command, word{text: f, known: true})
	}
	r.commands = append(r.commands, command)
	r.dynamic = r.dynamic || !w.known || strings.ContainsAny(w.text, `\$#"'`)
}

// wrapped finds the commands that follow the options of a program that runs
// them. If an option or a word is unknown, every word is taken as a possible
// start, which may deny too much but never too little.
func (p program) wrapped(name string, args []word, stdin *word) runs {
	o := p.read(args, true)
	r := o.runs(name)
	r.doubt = name + " runs another command"
	if slices.ContainsFunc(o.options, func(x option) bool { return has(p.silent, x.name) }) {
		return r
	}
	if p.shell {
		r.readsScript(p, len(args)-o.rest, stdin)
	}
	start := min(o.rest+p.skip, len(args))
	last := min(start+1, len(args))
	if p.vague || o.strange || o.unknown != "" || start < len(args) && strings.HasPrefix(args[start].text, "-") {
		start, last = o.rest, len(args)
	}
	for i := start; i < last; i++ {
		r.commands = append(r.commands, p.inner(o, args[i:]))
		if p.vague && strings.Trim(args[i].text, plainChars) != "" { // a line for a shell
			r.scripts = append(r.scripts, args[i].text)
		}
	}
	for _, x := range o.options {
		if has(p.splits, x.name) {
			r.splits(word{text: x.value.text + " " + joined(args[o.rest:]), known: x.value.known})
			r.splits(word{text: x.value.text + " " + joined(args[min(1, len(args)):]), known: x.value.known}) // it may be an option
		}
	}
	if p.vague { // sg GROUP -c LINE
		all := p.read(args, false)
		more := all.runs(name)
		r.scripts, r.dynamic = append(r.scripts, more.scripts...), r.dynamic || more.dynamic
	}
	return r
}

// readsScript adds what a shell reads if there is no command among so many
// words.
func (r *runs) readsScript(p program, words int, stdin *word) {
	if p.vague { // the first may be a user, a group, a file
		words--
	}
	switch {
	case stdin != nil:
		r.scripts = append(r.scripts, stdin.text)
		r.dynamic = r.dynamic || !stdin.known
	case words <= p.skip && len(r.scripts) == 0: // there may be a pipe
		r.dynamic = true
	}
}

// inner returns the command that a wrapper runs, with what is added to it when
// it runs: words at its end, or input that replaces a placeholder.
func (p program) inner(o optionsRead, args []word) []word {
	inner := slices.Clone(args)
	if !p.extra {
		return inner
	}
	mark := "{}"
	for _, x := range o.options {
		if x.name == "-I" {
			mark = x.value.text
		}
	}
	for i := range inner {
		if mark != "" && strings.Contains(inner[i].text, mark) {
			inner[i].known, inner[i].text = false, strings.ReplaceAll(inner[i].text, mark, "")
		}
	}
	return append(inner, word{})
}
