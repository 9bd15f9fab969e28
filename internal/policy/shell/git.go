package shell

import (
	"slices"
	"strings"
)

// gitGlobal describes the options of git that precede its subcommand.
func gitGlobal() program {
	return program{valued: "-C --git-dir --work-tree --namespace --super-prefix --attr-source", runs: "-c --config-env --exec-path", acts: "-p --paginate"}
}

// gitOptions describes the options of a subcommand of git.
func gitOptions(sub string) program {
	p := program{runs: "--upload-pack --receive-pack --exec --extcmd --open-files-in-pager", acts: "--ext-diff", writes: "--output --output-directory"}
	switch sub {
	case "grep":
		p.valued, p.runs = "-A -B -C -e -f -m --threads --max-depth", p.runs+" -O"
	case "archive", "format-patch", "bugreport", "diagnose":
		p.valued, p.writes = "-v -N", p.writes+" -o"
	case "rebase":
		p.valued, p.runs = "-C -s -X --onto --strategy", p.runs+" -x"
	case "difftool":
		p.valued, p.runs = "-t --tool", p.runs+" -x"
	case "clone":
		p.valued, p.runs = "-b -o -j --branch --origin --depth", p.runs+" -u -c --config --template"
	case "init":
		p.runs += " --template"
	case "send-email":
		p.runs += " --smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd"
	case "instaweb":
		p.runs += " --httpd --browser -d -b"
	case "commit", "tag", "merge", "stash", "notes", "revert":
		p.valued = "-m -F --message --file --author --date"
	}
	return p
}

// gitRuns returns what git runs because of its options, the options of its
// subcommand, and subcommands that run other programs or configure which programs
// run.
func gitRuns(args []word) runs {
	global := gitGlobal().read(args, true)
	r := global.runs("git")
	r.dynamic = r.dynamic || slices.ContainsFunc(global.options, func(o option) bool { return o.name == "--config-env" })
	if global.rest >= len(args) {
		return r
	}
	sub, rest := args[global.rest].text, args[global.rest+1:]
	options := gitOptions(sub).read(rest, false)
	if more := options.runs("git " + sub); more.doubt != "" {
		r.doubt, r.scripts = more.doubt, append(r.scripts, more.scripts...)
		for _, script := range more.scripts { // git appends the repository to some of them
			r.scripts = append(r.scripts, script+" "+joined(operands(rest)))
			r.dynamic = r.dynamic || strings.Contains(script, "=") // after an assignment, the repository becomes the program
		}
		r.dynamic, r.writes = r.dynamic || more.dynamic, append(r.writes, more.writes...)
	}
	first := slices.IndexFunc(rest, func(w word) bool { return !strings.HasPrefix(w.text, "-") })
	inner := ""
	if first >= 0 {
		inner = rest[first].text
	}
	switch {
	case sub == "bisect" && inner == "run":
		r.doubt, r.commands = "git bisect run runs another command", append(r.commands, rest[first+1:])
	case sub == "submodule" && inner == "foreach":
		r.doubt, r.scripts = "git submodule foreach runs another command", append(r.scripts, joined(rest[first+1:]))
	case sub == "format-patch" && !slices.ContainsFunc(rest, func(w word) bool { return w.text == "--stdout" }):
		r.doubt = "git format-patch writes files"
	case sub == "filter-branch":
		r.doubt = "git filter-branch runs other commands"
		for _, w := range rest {
			r.scripts = append(r.scripts, w.text)
		}
	case sub == "config" && !readsConfig(rest):
		r.doubt = "git config may set what git runs"
		for _, w := range operands(rest) {
			r.scripts = append(r.scripts, strings.TrimPrefix(w.text, "!"))
		}
	}
	for _, w := range rest {
		if line, ok := strings.CutPrefix(w.text, "ext::"); ok { // a URL of this kind is a command line
			r.doubt, r.scripts = "git may run "+w.text, append(r.scripts, line)
		}
	}
	r.shell = POSIX
	return r
}

// readsConfig reports whether git config with these arguments only reads: they
// contain an option or subcommand that reads, or a name without a value.
func readsConfig(args []word) bool {
	names := 0
	for i, w := range args {
		switch {
		case !w.known:
			return false
		case i == 0 && has("get list", w.text), strings.HasPrefix(w.text, "--get"), has("-l --list", w.text):
			return true
		case strings.Contains(w.text, ".") && !strings.HasPrefix(w.text, "-"):
			names++
		case !has("--global --system --local --worktree -z --null --show-origin --show-scope --name-only --includes --bool --int --path", w.text):
			return false
		}
	}
	return names == 1
}
