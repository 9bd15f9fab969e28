package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// runsOf finds the commands that a command runs in turn. Rules that allow never
// cover a wrapper, and rules that deny also apply to the commands it runs.
func runsOf(shell, name string, words []word, stdin *word) runs {
	args := words[1:]
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "csh", "tcsh", "fish", "pwsh", "powershell", "cmd":
		return shellRuns(name, args, stdin)
	case "eval":
		return runs{doubt: "eval runs text that is assembled at run time", shell: shell, scripts: []string{joinWords(args)},
			dynamic: slices.ContainsFunc(args, func(w word) bool { return !w.known })}
	case "find", "gfind":
		return findRuns(name, args)
	case "fd", "fdfind":
		return fdRuns(name, args)
	case "set", "shopt":
		return optionsOfShell(name, args)
	case "alias", "unalias":
		r := runs{doubt: name + " changes what later commands do"}
		if len(args) > 0 {
			r.rereads = "an alias"
		}
		return r
	case "ip":
		return ipRuns(args)
	case ".", "source", "trap", "unset", "read", "readarray", "mapfile", "history",
		"getopts", "hash", "enable", "bind", "complete", "compgen", "fc",
		"export", "declare", "typeset", "local", "readonly", "let", "coproc":
		return setsUp(name, args, stdin)
	case "printf", "test", "[", "wait":
		return evaluates(name, args)
	}
	t := tableOf(name)
	gitSub, _ := strings.CutPrefix(name, "git-")
	switch {
	case gitSub != name && hasKey(tableOf("git").subs, gitSub): // a program in the folder of git
		return runs{through: true, commands: [][]word{gitCommand(word{text: gitSub, known: true}, args)}}
	case name == "jobs" &&
		!slices.ContainsFunc(args, func(w word) bool { return !w.known || strings.Contains(w.text, "x") }), t == nil:
		return runs{}
	case t.has("wraps"):
		return t.wrapped(name, words, stdin)
	}
	args = t.splitCluster(args)
	r := t.readCommand(args)
	if name == "git" {
		return gitRuns(&r, args)
	}
	return r.runsCommands(args)
}

// ipRuns returns the commands that ip runs with "netns exec" and "vrf exec", whose
// words may be abbreviated, or a doubt for -b and -batch, which read commands from
// a file.
func ipRuns(args []word) runs {
	for i, a := range args {
		switch {
		case !a.known && !a.plainStart:
			return runs{doubt: "the options of ip are not known before it runs", dynamic: true}
		case len(a.text) > 1 && strings.HasPrefix("-batch", a.text):
			return runs{doubt: "ip runs the commands in a file", dynamic: true}
		case a.text != "" && strings.HasPrefix("exec", a.text):
			r := runs{doubt: "ip runs another command"}
			for rest := args[i+1:]; len(rest) > 0; rest = rest[1:] {
				r.commands = append(r.commands, rest)
			}
			return r
		}
	}
	return runs{}
}

// setsUp handles builtins that change the effect of later commands.
func setsUp(name string, args []word, stdin *word) runs {
	r := runs{doubt: name + " changes what later commands do", shell: Bash, evaluates: name != "trap"}
	switch name {
	case "hash": // -p assigns a program to another name
		for i := range args {
			r.commands = append(r.commands, args[i:])
		}
	case "trap":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 1 {
			r.scripts, r.dynamic = []string{args[0].text}, !args[0].known
		}
	case ".", "source":
		r.dynamic = len(args) == 0 || !args[0].known || mayBeStdin(args[0].text)
		if stdin != nil {
			r.scripts = []string{stdin.text}
		}
	case "coproc":
		r.dynamic = true
	}
	r.dynamic = r.dynamic || name != "trap" && slices.ContainsFunc(args, evaluated)
	if name == "read" && !slices.ContainsFunc(args,
		func(w word) bool { return !w.known || w.text != "-r" && !isLocalVariable(w.text) }) {
		r.doubt, r.passes = "", true
	}
	for _, a := range args { // enable -f, complete -C and -W, mapfile -C, fc -e, bind -x
		if strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "CFWexf") &&
			name != "read" && name != "export" && name != "unset" {
			r.scripts = append(r.scripts, joinWords(args))
			r.dynamic = true
			break
		}
	}
	return r
}

// optionsOfShell handles set and shopt, some of whose options change how the rest
// of the line is read.
func optionsOfShell(name string, args []word) runs {
	r := runs{doubt: name + " changes what later commands do"}
	if name == "set" && isStrictMode(args) {
		return runs{passes: true}
	}
	harmless := "-- - pipefail errexit nounset xtrace allexport verbose errtrace functrace nullglob globstar dotglob failglob inherit_errexit lastpipe"
	for i, a := range args {
		flags := strings.TrimLeft(a.text, "-+")
		switch {
		case !a.known:
			r.rereads = name + " with an option that is not known before it runs"
		case a.text == "--" && name == "set":
			return r
		case hasWord(harmless, a.text):
		case name == "set" && flags != a.text && strings.Trim(flags, "eufxoETCav") == "":
		case name == "shopt" && hasWord("-s -u -q -p", a.text):
		case name == "set" && flags == a.text && (i == 0 || !strings.HasSuffix(args[i-1].text, "o")):
			return r // positional parameters
		default:
			r.rereads = name + " " + a.text
		}
	}
	return r
}

// isStrictMode reports whether the arguments of set only make the shell stop at errors or show
// what it runs, as in set -euo pipefail.
func isStrictMode(args []word) bool {
	for i := 0; i < len(args); i++ {
		flags, ok := strings.CutPrefix(args[i].text, "-")
		if !args[i].known || !ok || flags == "" || strings.Trim(flags, "euxo") != "" {
			return false
		}
		if n := strings.Count(flags, "o"); n > 0 {
			if i++; n > 1 || i == len(args) || !args[i].known || !hasWord("pipefail errexit nounset xtrace", args[i].text) {
				return false
			}
		}
	}
	return len(args) > 0
}

// mayBeStdin reports whether a path may lead to an open file, such as /dev/stdin and, from
// another folder, fd/0.
func mayBeStdin(text string) bool {
	text = path.Clean(text)
	base := path.Base(text)
	return strings.HasPrefix(text, "/dev/") || strings.HasPrefix(text, "/proc/") ||
		base == "stdin" || strings.Trim(base, "0123456789") == ""
}

// shellRuns returns what a shell runs: the script after -c, a file, or its stdin.
func shellRuns(name string, args []word, stdin *word) runs {
	r := runs{doubt: name + " runs a script that no rule on commands covers", shell: Bash}
	switch name {
	case "sh", "dash", "ash":
		r.shell = POSIX
	case "bash", "rbash":
	default:
		r.rereads = "a script for " + name
	}
	script, reads := false, false
words:
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.known && a.text == "":
			r.dynamic = true
			return r
		case a.text == "--rcfile" || a.text == "--init-file":
			i++
			r.dynamic = r.dynamic || i < len(args) && !args[i].known
			continue
		case strings.HasPrefix(a.text, "--"):
			continue
		case strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "+"):
			script = script || strings.ContainsRune(a.text, 'c')
			reads = reads || strings.ContainsRune(a.text, 's')
			i += strings.Count(a.text, "o") + strings.Count(a.text, "O") // each of these options takes a name
			continue
		case script:
			// The words after the script are its parameters, which it may run.
			r.dynamic = r.dynamic || !a.known || len(args) > i+1 && strings.ContainsAny(a.text, "$")
			r.scripts = []string{a.text}
			return r
		}
		if reads || !a.known || mayBeStdin(a.text) {
			break words
		}
		if i == 0 {
			r.doubt = "" // a script file, whose content is not known, so rules apply to its name
		}
		return r
	}
	if stdin != nil {
		r.scripts = []string{stdin.text}
	}
	r.dynamic = r.dynamic || stdin == nil || !stdin.known
	return r
}

// findRuns returns the commands that find runs with -exec and similar actions.
func findRuns(name string, args []word) runs {
	var r runs
	if _, commands, ok := findActions(args); ok {
		return runs{commands: commands}
	}
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			r.doubt = name + " runs another command"
			inner := slices.Clone(args[i+1 : end])
			if len(inner) > 0 && strings.Contains(inner[0].text, "{}") {
				inner[0].known = false
			}
			r.commands = append(r.commands, inner)
			i = end
		}
	}
	return r
}

// findActions divides the arguments of find into the commands that -exec runs and the others. ok is
// false unless it is certain where the commands begin and end, and that no file that find names
// begins with a dash.
func findActions(args []word) (rest []word, commands [][]word, ok bool) {
	if slices.ContainsFunc(args, func(w word) bool { return !w.known || hasWord("-execdir -ok -okdir", w.text) }) {
		return nil, nil, false
	}
	for i := 0; i < len(args); i++ {
		if args[i].text != "-exec" {
			rest = append(rest, args[i])
			continue
		}
		var command []word
		for i++; i < len(args) && args[i].text != ";" && !(args[i].text == "+" && args[i-1].text == "{}"); i++ {
			if args[i].text == "+" || args[i].text == "-exec" {
				return nil, nil, false
			}
			w := args[i]
			if strings.Contains(w.text, "{}") {
				w.known, w.plainStart, w.text = false, true, strings.ReplaceAll(w.text, "{}", "")
			}
			command = append(command, w)
		}
		if i == len(args) || len(command) == 0 || !command[0].known {
			return nil, nil, false
		}
		if args[i].text == "+" { // several files
			command = append(command, command[len(command)-1])
		}
		commands = append(commands, command)
	}
	return rest, commands, len(commands) > 0
}

// fdRuns returns the command that fd runs, which follows -x, -X or their long
// names.
func fdRuns(name string, args []word) runs {
	for i, a := range args {
		names, value := tableOf(name).optionsIn(a.text)
		if !slices.Contains(names, "exec") && !slices.Contains(names, "exec-batch") {
			continue
		}
		inner := slices.Clone(args[i+1:])
		if value != "" {
			inner = slices.Insert(inner, 0, word{text: strings.TrimPrefix(value, "="), known: a.known})
		}
		return runs{doubt: name + " runs another command", commands: [][]word{inner}}
	}
	return runs{}
}

// evaluates handles builtins that evaluate subscripts, or that set variables with
// certain options.
func evaluates(name string, args []word) runs {
	letters := "vR"
	if name == "wait" {
		letters = "p"
	}
	for i, a := range args {
		option := strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, letters)
		if name != "printf" && name != "wait" {
			option = a.text == "-v" || a.text == "-R"
		}
		unknown := !a.known && !a.plainStart
		if unknown && !a.split && i > 0 && (name == "test" || name == "[") && len(args[i-1].text) == 2 &&
			strings.ContainsAny(args[i-1].text[1:], "nzedfrwxsLhSp") {
			unknown = false // as in test -f "$x", where it is an operand
		}
		if option || unknown {
			return runs{doubt: name + " may set variables or evaluate its operands",
				dynamic: slices.ContainsFunc(args, evaluated)}
		}
	}
	return runs{}
}

// harmless explains why the arguments of a command are not known to be harmless; ""
// if they are. named explains why the first lead words, which determine what it does, must
// all be in a rule; "" if the program is enough. short are the words without harmless options
// between those.
func harmless(words []word) (why, named string, lead int, short []word) {
	name := programName(words[0].text)
	t := tableOf(name)
	if t == nil || !t.isNamed(words[0].text) {
		return fmt.Sprintf("the arguments of %s are not known to be harmless", words[0].text), "", len(words), words
	}
	if t.has("any") {
		return "", "", 1, words
	}
	if t.has("wraps") { // as in command -v, which runs nothing
		return "", "", len(words), words
	}
	args := words[1:]
	if t.has("exec") {
		if rest, _, ok := findActions(args); ok {
			args = rest
		}
	}
	r := t.readCommand(args)
	// What is missing is the subcommand or the script.
	missing := r.table.has("lead") && len(r.operands) == 0 || r.lead == 0 && t.hasSubcommands()
	switch {
	case missing && len(words) == 1+r.lead:
		return r.unlisted, r.named, len(words) + 1, words
	case missing || r.unlisted != "":
		return r.unlisted, r.named, len(words), words
	}
	return "", r.named, 1 + len(r.path), slices.Concat(words[:1], r.path, words[1+r.lead:])
}
