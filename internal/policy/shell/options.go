package shell

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// runs describes what a program runs in turn.
type runs struct {
	doubt    string   // why no rule on commands can allow the program; "" if one can
	dynamic  bool     // what it runs is not known before the line runs
	rereads  string   // why shells may read the rest of the line differently
	commands [][]word // commands among its arguments
	scripts  []string // scripts that it passes to a shell
	shell    string   // the grammar of scripts
	writes   []string // files that its options name

	tooMany   bool   // there are too many commands to analyze; only the first is in commands
	evaluates bool   // it evaluates the values of variables as code
	variables []word // NAME=VALUE for the commands it runs
}

// program describes the options with which a program runs other programs or writes
// files, and the other options that must be known to find those. Each list
// contains options as on a command line, such as "-o --output". Letters are also
// found in clusters, and long names by their abbreviations.
type program struct {
	valued   string // have a value, in the same word or the next
	attached string // have a value only in the same word
	runs     string // run their value, or set a command to run
	acts     string // have no value, and run a command or change a file
	writes   string // write the file that their value names
	outputs  string // like writes, but a relative path inside the folder is harmless
	whole    bool   // an option is a whole word after one or two dashes, never a cluster or an abbreviation
	operands int    // if not 0, operands after this many name files that are written

	wraps   bool   // a command follows the options
	flags   string // have no value; must be complete for wrappers, because the command could start anywhere after an unknown option
	skip    int    // number of operands before the command
	vague   bool   // any word after the options may begin a command or be a script
	assigns bool   // words NAME=VALUE may precede the command
	shell   bool   // without a command it runs a shell, which reads stdin
	extra   bool   // words are added to the command at run time
	silent  string // options with which it runs nothing
	splits  string // options whose value is split into the words of a command, as by env
	scripts string // options whose value is a script
}

// option is an option as the program would interpret it.
type option struct {
	name  string // as in the lists of a program
	value word
}

// optionsRead contains the arguments of a program, divided into options and
// operands.
type optionsRead struct {
	program *program
	options []option
	rest    int    // index of the first operand, if it ends the options
	number  int    // number of operands
	unknown string // a word that is not known before the line runs and may be an option
	strange bool   // an option before rest is in none of the lists

	variables []word // NAME=VALUE before rest
}

// read divides arguments into options and operands. If first is set, the first
// operand ends the options, as in programs that run the words after it.
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
		case p.whole && strings.HasPrefix(a.text, "-"):
			i += p.word(&out, args[i:])
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

// isAssignment reports whether env would treat a word as an assignment. env
// accepts any name.
func isAssignment(text string) bool { return strings.Contains(text, "=") }

// long reads --name or --name=value, where the name may be abbreviated, and
// returns how many of the following words belong to its value. An ambiguous
// abbreviation is treated as each of the options that it may mean.
func (p *program) long(out *optionsRead, args []word) int {
	text := args[0].text
	name, value, attached := strings.Cut(text, "=")
	found, taken := false, 0
	for _, list := range []string{p.valued, p.runs, p.writes, p.outputs, p.splits, p.scripts} {
		for full := range strings.FieldsSeq(list) {
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
	for full := range strings.FieldsSeq(p.acts) {
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
	if has(p.flags+" "+p.attached, name) { // a complete name is not an abbreviation of another
		return 0
	}
	out.strange = out.strange || !found && !known && !attached || found && known
	return taken
}

// word reads an option that is a whole word, such as -name or -name=value, and
// returns how many of the following words belong to its value.
func (p *program) word(out *optionsRead, args []word) int {
	name, value, attached := strings.Cut("-"+strings.TrimLeft(args[0].text, "-"), "=")
	switch {
	case has(p.acts, name):
		out.options = append(out.options, option{name: name})
	case !has(p.valued+" "+p.runs+" "+p.writes+" "+p.outputs, name):
	case !attached && len(args) > 1:
		out.options = append(out.options, option{name, args[1]})
		return 1
	default:
		out.options = append(out.options, option{name, word{text: value, known: args[0].known}})
	}
	return 0
}

// cluster reads a cluster of options such as -abc and returns how many of the
// following words belong to their values.
func (p *program) cluster(out *optionsRead, args []word) int {
	text := args[0].text
	if name, value, attached := strings.Cut(text, "="); len(name) > 2 && has(p.runs+" "+p.writes, name) { // a long option with one dash, such as -exec
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

// runs returns what a program runs because of its options.
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
			r.dynamic = r.dynamic || !x.value.known || x.value.text == "" // if it is empty, the next word may take its place
		case has(p.acts, x.name):
			r.doubt = fmt.Sprintf("%s %s may run another command or change a file", name, x.name)
		case has(p.writes, x.name) && (!x.value.known || x.value.text != "/dev/null" && x.value.text != "-"):
			r.doubt = fmt.Sprintf("%s %s writes a file", name, x.name)
			if x.value.text != "" {
				r.writes = append(r.writes, x.value.text)
			}
		case has(p.outputs, x.name):
			v := x.value
			if !v.known || v.text != "/dev/null" && (strings.HasPrefix(v.text, "~") || !filepath.IsLocal(v.text)) {
				r.doubt = fmt.Sprintf("%s %s writes a file", name, x.name)
			}
			r.writes = append(r.writes, v.text)
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

// splits adds the command in a value that env splits into words by its own rules.
func (r *runs) splits(w word) {
	text := strings.NewReplacer(`\_`, " ", `\t`, " ", `\n`, " ", `\v`, " ", `\f`, " ", `\r`, " ", `\c`, " ", `"`, "", "'", "").Replace(w.text)
	command := []word{{text: "env", known: true}}
	for f := range strings.FieldsSeq(text) {
		command = append(command, word{text: f, known: true})
	}
	r.commands = append(r.commands, command)
	r.dynamic = r.dynamic || !w.known || strings.ContainsAny(w.text, `\$#"'`)
}

// wrapped returns what a program runs that takes a command after its options. If
// an option or a word is unknown, the command may begin at any word, so each is
// tried. This may deny too much, but never too little.
func (p program) wrapped(name string, args []word, stdin *word) runs {
	o := p.read(args, true)
	r := o.runs(name)
	r.doubt = name + " runs another command"
	if slices.ContainsFunc(o.options, func(x option) bool { return has(p.silent, x.name) }) {
		r.doubt = ""
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
	if (last-start)*(len(args)-start) > maxInnerWords {
		r.tooMany, last = true, start+1
	}
	for i := start; i < last; i++ {
		r.commands = append(r.commands, p.inner(o, args[i:]))
		if p.vague && strings.Trim(args[i].text, plainChars) != "" { // it may be a script
			r.scripts = append(r.scripts, args[i].text)
		}
	}
	for _, x := range o.options {
		if has(p.splits, x.name) {
			r.splits(word{text: x.value.text + " " + joined(args[o.rest:]), known: x.value.known})
			r.splits(word{text: x.value.text + " " + joined(args[min(1, len(args)):]), known: x.value.known}) // the first argument may be the option itself
		}
	}
	if p.vague { // options may also follow operands, as in sg GROUP -c LINE
		all := p.read(args, false)
		more := all.runs(name)
		r.scripts, r.dynamic = append(r.scripts, more.scripts...), r.dynamic || more.dynamic
	}
	return r
}

// readsScript adds the script that a wrapper's shell reads from stdin if the given
// number of operands contains no command.
func (r *runs) readsScript(p program, words int, stdin *word) {
	if p.vague { // the first operand may be a user, a group or a file
		words--
	}
	switch {
	case stdin != nil:
		r.scripts = append(r.scripts, stdin.text)
		r.dynamic = r.dynamic || !stdin.known
	case words <= p.skip && len(r.scripts) == 0: // stdin may be a pipe
		r.dynamic = true
	}
}

// inner returns the command that a wrapper runs. Words that are added at run time
// are unknown: words appended to the command, or input that replaces a
// placeholder.
func (p program) inner(o optionsRead, args []word) []word {
	if !p.extra {
		return args
	}
	inner := slices.Clone(args)
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
