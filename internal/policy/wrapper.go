package policy

import (
	"slices"
	"strings"
)

// runs tells what a program runs beside itself.
type runs struct {
	doubt    string   // why no rule on commands covers it
	dynamic  bool     // what it runs is not known before running
	commands [][]word // commands among its arguments
	scripts  []string // texts that it gives to a shell
	shell    string   // the grammar of scripts
}

// runs finds the commands inside a command. Wrappers are never covered by a
// rule that allows; rules that deny look inside them.
func (a *analysis) runs(name string, words []word, stdin *word) runs {
	args := words[1:]
	if w, ok := wrapperOf(name); ok {
		return w.runs(name, args)
	}
	if isShell(name) {
		return shellRuns(name, args, stdin)
	}
	switch name {
	case "eval":
		return evalRuns(args)
	case "find", "fd", "fdfind":
		return findRuns(name, args)
	case "watch", "parallel":
		r := wrapper{valued: "-n --interval -j --jobs"}.runs(name, args)
		r.scripts = append(r.scripts, joined(args))
		return r
	case "su", "runuser", "script", "flock":
		return optionScript(name, args)
	case ".", "source", "trap", "alias", "unalias", "set", "shopt", "unset", "read", "readarray", "mapfile",
		"getopts", "hash", "enable", "bind", "complete", "compgen", "fc", "export", "declare", "typeset", "local", "readonly", "let", "coproc":
		r := runs{doubt: name + " changes what later commands do"}
		if name == "trap" && len(args) > 1 {
			r.scripts = []string{args[0].text}
		}
		return r
	case "printf", "test", "[", "wait":
		return evaluates(name, args)
	case "git", "tar", "rg", "sort":
		return optionRuns(name, args)
	}
	return runs{}
}

// wrapper describes a program that runs the command among its arguments.
type wrapper struct {
	valued  string // options that take the next word as their value
	flags   string // options that take none; others make the start ambiguous
	skip    int    // words before the command
	assigns bool   // NAME=VALUE words may stand before the command
	extra   bool   // further words are added at run time
	silent  string // options with which nothing is run
	split   string // options whose value is a command line
}

// wrapperOf returns how a program runs another one.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "env":
		return wrapper{valued: "-u --unset -C --chdir -a --argv0", flags: "-i - -0 --null --ignore-environment -v --debug", split: "-S --split-string", assigns: true}, true
	case "xargs":
		return wrapper{valued: "-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --max-chars --delimiter --arg-file --process-slot-var",
			flags: "-0 --null -r --no-run-if-empty -t --verbose -p --interactive -x --exit -i -l", extra: true}, true
	case "sudo":
		return wrapper{valued: "-u -g -h -p -C -T -r -t -U -D -R --user --group --host --prompt --chdir", flags: "-n -E -H -S -k -b -A -i -s -P", assigns: true}, true
	case "doas":
		return wrapper{valued: "-u -C", flags: "-n -s"}, true
	case "timeout":
		return wrapper{valued: "-s -k --signal --kill-after", flags: "--foreground --preserve-status -v --verbose", skip: 1}, true
	case "nice":
		return wrapper{valued: "-n --adjustment"}, true
	case "ionice":
		return wrapper{valued: "-c -n -p -P -u --class --classdata", flags: "-t --ignore"}, true
	case "stdbuf":
		return wrapper{valued: "-i -o -e --input --output --error"}, true
	case "time":
		return wrapper{valued: "-f -o --format --output", flags: "-p -a -v --portability --append --verbose"}, true
	case "chroot", "taskset", "chrt", "gosu", "su-exec", "setpriv":
		return wrapper{skip: 1}, true
	case "exec":
		return wrapper{valued: "-a", flags: "-c -l"}, true
	case "command":
		return wrapper{flags: "-p", silent: "-v -V"}, true
	case "strace", "ltrace":
		return wrapper{valued: "-e -o -p -s -u -E -a -b -I -O -S -X -P", flags: "-f -ff -c -t -tt -q -v -y -T"}, true
	case "nohup", "setsid", "builtin", "busybox", "toybox", "unshare", "nsenter", "systemd-run", "pkexec", "firejail", "bwrap",
		"caffeinate", "unbuffer", "rlwrap", "chronic", "ccache", "torsocks", "proxychains", "proxychains4", "xvfb-run", "dbus-run-session", "start-stop-daemon":
		return wrapper{}, true
	}
	return wrapper{}, false
}

func has(list, item string) bool { return slices.Contains(strings.Fields(list), item) }

// maxStarts bounds how many words are taken for the start of a command.
const maxStarts = 16

// runs finds where the inner command starts. Where an unknown option makes
// that ambiguous, every word near it is taken for a start: that may deny more.
func (w wrapper) runs(name string, args []word) runs {
	r := runs{doubt: name + " runs another command"}
	i, ambiguous := 0, false
	for ; i < len(args); i++ {
		a := args[i]
		if a.text == "--" {
			i++
			break
		}
		option, value, attached := strings.Cut(a.text, "=")
		switch {
		case has(w.silent, a.text):
			return r
		case has(w.split, option):
			r.shell = ShellPOSIX
			if attached {
				r.scripts = append(r.scripts, value)
			} else if i++; i < len(args) {
				r.scripts = append(r.scripts, args[i].text)
			}
			continue
		case w.split != "" && strings.HasPrefix(a.text, "-S"):
			r.shell, r.scripts = ShellPOSIX, append(r.scripts, a.text[2:])
			continue
		case has(w.valued, a.text):
			i++
			continue
		case strings.HasPrefix(a.text, "-"):
			ambiguous = ambiguous || !attached && !has(w.flags, a.text) && !attachedValue(w.valued, a.text)
			continue
		case w.assigns && attached && !strings.ContainsAny(option, "/. "):
			continue
		}
		break
	}
	i = min(i+w.skip, len(args))
	last := i + 1
	if ambiguous {
		last = i + maxStarts
	}
	for start := i; start < last && start < len(args); start++ {
		inner := slices.Clone(args[start:])
		if w.extra {
			inner = append(inner, word{})
		}
		r.commands = append(r.commands, inner)
	}
	return r
}

// attachedValue reports whether option is a short option with its value in the
// same word, such as -n10.
func attachedValue(valued, option string) bool {
	return len(option) > 2 && option[1] != '-' && has(valued, option[:2])
}

func isShell(name string) bool {
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "pwsh", "powershell", "cmd":
		return true
	}
	return false
}

// shellRuns reads the arguments of a shell: -c with a script, a file, or
// stdin.
func shellRuns(name string, args []word, stdin *word) runs {
	r := runs{doubt: name + " runs a script that no rule on commands covers", shell: ShellBash}
	if name == "sh" || name == "dash" || name == "ash" {
		r.shell = ShellPOSIX
	}
	script := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.known && a.text == "":
			r.dynamic = true
			return r
		case a.text == "--rcfile" || a.text == "--init-file" || a.text == "-o" || a.text == "+o" || a.text == "-O" || a.text == "+O":
			i++
			continue
		case strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.ContainsRune(a.text, 'c'):
			script = true
			continue
		case strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "+"):
			continue
		case script:
			r.dynamic = !a.known
			r.scripts = []string{a.text}
			return r
		}
		if i == 0 && a.known {
			r.doubt = "" // a script file: the words say all there is to know
		}
		return r
	}
	if stdin != nil {
		r.scripts = []string{stdin.text}
	}
	r.dynamic = stdin == nil || !stdin.known
	return r
}

func evalRuns(args []word) runs {
	r := runs{doubt: "eval runs what is put together at run time", shell: ShellBash, scripts: []string{joined(args)}}
	r.dynamic = slices.ContainsFunc(args, func(w word) bool { return !w.known })
	return r
}

// findRuns reads -exec and its kin, and the actions that delete or write.
func findRuns(name string, args []word) runs {
	var r runs
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			if name == "find" && !strings.HasPrefix(args[i].text, "-e") && !strings.HasPrefix(args[i].text, "-o") {
				continue
			}
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			r.doubt = name + " runs another command"
			r.commands = append(r.commands, args[i+1:end])
			i = end
		case "-delete", "-fprint", "-fprint0", "-fprintf", "-fls":
			r.doubt = "find changes files with " + args[i].text
		}
		if i < len(args) && !args[i].known && args[i].split {
			r.doubt = "the options of find are not known before running"
		}
	}
	return r
}

// optionScript reads programs that take a command line behind -c, or else a
// command behind one word.
func optionScript(name string, args []word) runs {
	for i, a := range args {
		if (a.text == "-c" || a.text == "--command") && i+1 < len(args) {
			return runs{doubt: name + " runs another command", dynamic: !args[i+1].known, shell: ShellBash, scripts: []string{args[i+1].text}}
		}
		if v, ok := strings.CutPrefix(a.text, "--command="); ok {
			return runs{doubt: name + " runs another command", dynamic: !a.known, shell: ShellBash, scripts: []string{v}}
		}
	}
	return wrapper{valued: "-w -E -u -g -G -s", skip: 1}.runs(name, args)
}

// evaluates reads shell builtins that evaluate subscripts or set variables with
// some options.
func evaluates(name string, args []word) runs {
	for _, a := range args {
		if a.text == "-v" || a.text == "-R" || a.text == "-p" || !a.known && a.split {
			return runs{doubt: name + " may set variables or evaluate its operands"}
		}
	}
	return runs{}
}

// optionRuns reads options of well-known programs that run something else.
func optionRuns(name string, args []word) runs {
	var options string
	switch name {
	case "git":
		options = "-c --config-env --exec-path -p --paginate"
	case "tar":
		options = "-I -F --to-command --use-compress-program --checkpoint-action --info-script --new-volume-script --rsh-command"
	case "rg":
		options = "--pre --hostname-bin"
	case "sort":
		options = "--compress-program"
	}
	for _, a := range args {
		option, _, _ := strings.Cut(a.text, "=")
		if name == "git" && a.known && !strings.HasPrefix(a.text, "-") {
			break // options behind the subcommand are the subcommand's
		}
		if has(options, option) {
			return runs{doubt: name + " " + option + " may run another command"}
		}
	}
	return runs{}
}

func joined(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}
