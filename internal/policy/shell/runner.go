package shell

import (
	"path"
	"slices"
	"strings"
)

// A runner is a program or subcommand that runs the command in its arguments in the
// environment of a project, a language or a loader, as in "uv run pytest". Unlike a wrapper,
// it is the program of a rule that allows it. Rules that deny also apply to what it runs.

// runs returns what a program runs because of its options, and the command that a runner among
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
			inner := tables().table[p]()
			if !inner.has("runs") {
				continue
			}
			at := slices.IndexFunc(args, func(a word) bool { return a.text == sub || t.means(a.text, sub) })
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
	o := t.read(args, true)
	start := min(o.rest+t.skip(), len(args))
	last := min(start+1, len(args))
	if anywhere || t.has("vague") || o.unsure || o.shifted {
		start, last = 0, len(args)
	}
	r.through, r.variables = true, append(r.variables, o.variables...)
	r.commands = append(r.commands, o.attached...)
	first := len(r.commands)
	last = r.inner(t, o, args, start, last)
	for i, c := range r.commands[first:] {
		if t.has("package") {
			r.commands[first+i] = packageCommand(c)
		}
	}
	for _, a := range args[start:last] {
		if t.has("vague") && strings.Contains(a.text, " ") { // it may be a command line
			r.commands = append(r.commands, split(a))
		}
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
	named.text = path.Base(text)
	return append([]word{named}, words[1:]...)
}
