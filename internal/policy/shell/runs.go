package shell

import (
	"path"
	"slices"
	"strconv"
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
	writes   []string // files that its options and operands name
	inside   []Inside // files that it writes if a folder exists
	trees    []string // what it moves, removes or restores with all that is in it
	unclear  bool     // it writes files whose names are not known before the line runs

	passes    bool   // it does nothing besides running the commands
	through   bool   // a rule that allows the program allows the commands, too
	scanned   int    // bytes that splits has read
	tooMany   bool   // there are too many commands to analyze; only the first is in commands
	evaluates bool   // it evaluates the values of variables as code
	variables []word // NAME=VALUE for the commands it runs
}

// splits adds the command in a value that env splits into words by its own rules.
func (r *runs) splits(w word) {
	r.scanned += len(w.text)
	r.tooMany = r.tooMany || r.scanned > maxInnerWords
	text := strings.NewReplacer(`\_`, " ", `\t`, " ", `\n`, " ", `\v`, " ",
		`\f`, " ", `\r`, " ", `\c`, " ", `"`, "", "'", "").Replace(w.text)
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
func (t *table) wrapped(name string, words []word, stdin *word) runs {
	args := words[1:]
	o := t.readArgs(args, true)
	r := o.runs()
	vague := t.has("vague") || t.has("joins") && (o.unlisted != "" || !arePlain(args[o.rest:]))
	switch {
	case vague || !t.passes(words[0].text, o):
		r.doubt = name + " runs another command"
	case o.rest < len(args):
		r.passes = isPlainCommand(args[o.rest:], t.skip())
		if !r.passes {
			r.doubt = name + " runs another command"
		}
	}
	if slices.ContainsFunc(o.options, func(x optionValue) bool { return x.kind == kindSilent }) {
		r.doubt, r.passes = "", true
		return r
	}
	if t.has("shell") {
		r.readsScript(t, len(args)-o.rest, stdin)
	}
	start := min(o.rest+t.skip(), len(args))
	last := min(start+1, len(args))
	if vague || o.unlisted != "" || start < len(args) && strings.HasPrefix(args[start].text, "-") {
		start, last = o.rest, len(args)
	}
	last = r.inner(t, o, args, start, last)
	for i := start; i < last; i++ {
		if vague && strings.Trim(args[i].text, plainChars) != "" { // it may be a script
			r.scripts = append(r.scripts, args[i].text)
		}
	}
	r.commands = append(r.commands, o.attached...)
	for _, x := range o.options {
		if x.kind == kindSplits && !r.tooMany {
			r.splits(word{text: x.value.text + " " + joinWords(args[o.rest:]), known: x.value.known})
			// The first argument may be the option itself.
			r.splits(word{text: x.value.text + " " + joinWords(args[min(1, len(args)):]), known: x.value.known})
		}
	}
	if vague { // options may also follow operands, as in sg GROUP -c LINE
		all := t.readArgs(args, false)
		more := all.runs()
		r.scripts, r.dynamic = append(r.scripts, more.scripts...), r.dynamic || more.dynamic
		r.tooMany = r.tooMany || more.tooMany
		r.commands = append(r.commands, all.attached[min(len(o.attached), len(all.attached)):]...)
	}
	return r
}

// passes reports whether a wrapper does nothing besides running the command behind its options.
func (t *table) passes(program string, o reading) bool {
	return t.has("passes") && t.isNamed(program) && o.unlisted == "" && !o.shifted && !o.dynamic &&
		!slices.ContainsFunc(o.options, func(x optionValue) bool { return x.kind == kindBars }) &&
		!slices.ContainsFunc(o.variables, func(w word) bool {
			name, value, _ := strings.Cut(w.text, "=")
			return !w.known || !isHarmlessVariable(name, value)
		})
}

// arePlain reports whether the words mean the same when they are joined and read again.
func arePlain(words []word) bool {
	return !slices.ContainsFunc(words, func(w word) bool {
		return !w.known || w.text == "" || strings.Trim(w.text, plainChars) != ""
	})
}

// isPlainCommand reports whether a command certainly begins behind the first skip words, none of
// which can be an option.
func isPlainCommand(words []word, skip int) bool {
	return len(words) > skip && !slices.ContainsFunc(words[:skip+1], func(w word) bool {
		return !w.known || w.text == "" || strings.HasPrefix(w.text, "-")
	})
}

// inner adds the commands that may begin at the arguments from start to last, and returns
// the last that it has added.
func (r *runs) inner(t *table, o reading, args []word, start, last int) int {
	if (last-start)*(len(args)-start) > maxInnerWords {
		r.tooMany, last = true, start+1
	}
	for i := start; i < last; i++ {
		r.commands = append(r.commands, t.inner(o, args[i:]))
	}
	return last
}

// skip returns the number of operands before the command that a program runs.
func (t *table) skip() int {
	n, _ := strconv.Atoi(t.attrs["skip"]) // 0 if there is none
	return n
}

// readsScript adds the script that a wrapper's shell reads from stdin if the given
// number of operands contains no command.
func (r *runs) readsScript(t *table, words int, stdin *word) {
	if t.has("vague") { // the first operand may be a user, a group or a file
		words--
	}
	switch {
	case stdin != nil:
		r.scripts = append(r.scripts, stdin.text)
		r.dynamic = r.dynamic || !stdin.known
	case words <= t.skip() && len(r.scripts) == 0: // stdin may be a pipe
		r.dynamic = true
	}
}

// inner returns the command that a wrapper runs. Words that are added at run time
// are unknown: words appended to the command, or input that replaces a
// placeholder.
func (t *table) inner(o reading, args []word) []word {
	if !t.has("extra") {
		return args
	}
	inner := slices.Clone(args)
	mark := "{}"
	for _, x := range o.options {
		if (x.name == "-I" || x.name == "-i" || x.name == "--replace") && x.value.text != "" {
			mark = x.value.text
		}
	}
	for i := range inner {
		if strings.Contains(inner[i].text, mark) {
			inner[i].known, inner[i].text = false, strings.ReplaceAll(inner[i].text, mark, "")
			inner[i].plainStart = false
		}
	}
	return append(inner, word{})
}

// A runner is a program or subcommand that runs the command in its arguments in the
// environment of a project, a language or a loader, as in "uv run pytest". Unlike a wrapper,
// it is the program of a rule that allows it. Rules that deny also apply to what it runs.

// runsCommands returns what a program runs because of its options, and the command that a runner among
// its subcommands runs. If an option or the subcommand is unknown, any word may be a runner.
func (r *reading) runsCommands(args []word) runs {
	out := r.runs()
	if r.runner != nil {
		out.runner(r.runner, args[r.at:], r.afterUnknown)
		return out
	}
	if r.unlisted == "" {
		return out
	}
	for t := r.table; t != nil; t = t.parent {
		for sub, p := range t.subs {
			inner := tables.Get().table[p]()
			if !inner.has("runs") {
				continue
			}
			at := slices.IndexFunc(args, func(a word) bool { return a.text == sub || t.isNameOf(a.text, sub) })
			if r.lead == 0 && r.rest < len(args) && !args[r.rest].known && args[r.rest].text == "" { // any subcommand
				at = r.rest
			}
			if at >= 0 { // what follows contains all that follows a later one
				out.runner(inner, args[at+1:], true)
			}
		}
	}
	return out
}

// runner adds the command in the arguments of a runner. With anywhere, it may begin at any of
// them.
func (r *runs) runner(t *table, args []word, anywhere bool) {
	o := t.readArgs(args, true)
	start := min(o.rest+t.skip(), len(args))
	last := min(start+1, len(args))
	if anywhere || t.has("vague") || o.unsure || o.shifted {
		start, last = 0, len(args)
	}
	r.through, r.variables = true, append(r.variables, o.variables...)
	r.tooMany = r.tooMany || o.scanned > maxInnerWords
	r.commands = append(r.commands, o.attached...)
	first := len(r.commands)
	last = r.inner(t, o, args, start, last)
	for _, a := range args[start:last] {
		if strings.Trim(a.text, plainChars) != "" { // it may be a command line
			r.commands = append(r.commands, pieces(a)...)
		}
	}
	for i, c := range r.commands[first:] {
		if t.has("package") {
			r.commands[first+i] = packageCommand(c)
		}
	}
	if (t.has("package") || t.has("lead")) && !t.has("vague") { // "go run ." names a folder, no builtin of a shell
		r.commands = slices.DeleteFunc(r.commands, func(c []word) bool { return c[0].known && c[0].text == "." })
	}
}

// packageCommand returns a command whose program may be a package, as in name@1.0, flake#name and
// npm:name.
func packageCommand(words []word) []word {
	text := words[0].text
	text = text[strings.LastIndexAny(text, "#:")+1:]
	if at := strings.LastIndexByte(text, '@'); at > 0 {
		text = text[:at]
	}
	named := words[0]
	if named.text = path.Base(text); named.text == words[0].text {
		return words
	}
	return append([]word{named}, words[1:]...)
}

// runs returns what a program runs and writes because of its options.
func (r *reading) runs() runs {
	out := runs{doubt: r.stdin, shell: POSIX, dynamic: r.dynamic, variables: r.variables, tooMany: r.scanned > maxInnerWords}
	for _, x := range r.options {
		switch x.kind {
		case kindRuns:
			out.scripts = append(out.scripts, x.value.text)
			if _, value, ok := strings.Cut(x.value.text, "="); ok {
				out.scripts = append(out.scripts, strings.TrimPrefix(value, "!"))
			}
			// If it is empty, the next word may take its place.
			out.dynamic = out.dynamic || !x.value.known || x.value.text == ""
		case kindWrites, kindStdout, kindOutput:
			if x.value.text != "" && (x.kind == kindOutput || !x.takes(x.value)) {
				out.written(x.value)
			}
		case kindSplits:
			out.splits(x.value)
		case kindSub:
			program, _, _ := strings.Cut(r.table.path, " ")
			x.value.text = program + " " + x.value.text
			out.commands = append(out.commands, pieces(x.value)...)
		case kindScript:
			out.shell = Bash
			out.scripts = append(out.scripts, x.value.text)
			out.dynamic = out.dynamic || !x.value.known
		}
	}
	r.written(&out)
	return out
}

// written adds the files that a program writes because its operands name them.
func (r *reading) written(out *runs) {
	base := r.base()
	placed := func(w word) word {
		if w.text != "" && (base.text != "" || !base.known) && !path.IsAbs(w.text) && w.text[0] != '~' {
			w.text, w.known = path.Join(base.text, w.text), w.known && base.known
		}
		return w
	}
	files, folder, from := r.targets()
	for _, w := range files {
		out.written(placed(w))
	}
	for _, w := range from {
		out.inside = append(out.inside, Inside{placed(folder).text, path.Base(w.text)})
		if r.table.path == "mv" || r.table.path == "git mv" {
			out.trees = append(out.trees, placed(w).text)
		}
	}
	switch r.table.path {
	case "git checkout", "git clean", "git restore", "git rm":
		for _, w := range r.operands {
			// A pathspec may have magic, and a pattern that git expands.
			w.known = w.known && !strings.HasPrefix(w.text, ":") && !strings.ContainsAny(w.text, `*?[\`)
			out.ruined(placed(w))
		}
	}
}

// base returns the folder that git enters because of its options before the subcommand.
func (r *reading) base() word {
	base := word{known: true}
	for _, x := range r.options {
		switch {
		case x.name != "-C" || !strings.HasPrefix(r.table.path, "git "):
		case path.IsAbs(x.value.text):
			base = x.value
		default:
			base = word{text: path.Join(base.text, x.value.text), known: base.known && x.value.known}
		}
		if len(base.text) > maxFolder {
			base = word{}
		}
	}
	return base
}

// written adds a file that a program writes.
func (r *runs) written(w word) {
	r.writes, r.unclear = append(r.writes, w.text), r.unclear || !w.isFile()
}

// ruined adds a file or folder that a program removes or overwrites if it exists. It is not among
// the written files: the program may change others too, so no rule that allows a path covers it.
// "." tells no more than no name at all.
func (r *runs) ruined(w word) {
	w.text = strings.TrimSuffix(w.text, "/")
	if w.text != "." {
		r.trees, r.unclear = append(r.trees, w.text), r.unclear || !w.isFile()
	}
}
