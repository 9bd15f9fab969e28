package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// ruins tells why a command would ruin the machine whatever was meant, "" if it
// would not: a recursive change of the root, a system folder or home, or a write
// to a disk.
func (a *analysis) ruins(name string, args []word) string {
	switch name {
	case "cd", "pushd":
		a.cd(args)
	case "chmod", "chown", "chgrp", "chattr", "chcon", "setfacl", "rm":
		letters := "R"
		if name == "rm" {
			letters = "rR"
		}
		if hasOption(args, letters, "--recursive") {
			return a.ruined(name+" changes all of", operands(args))
		}
	case "mv":
		from := operands(args)
		if len(from) > 1 && !hasOption(args, "t", "--target-directory") {
			from = from[:len(from)-1]
		}
		if why := a.ruined("mv moves all of", from); why != "" {
			return why
		}
	case "rsync":
		if hasOption(args, "", "--del") {
			return a.ruined("rsync deletes in", lastOperand(args))
		}
	case "find", "gfind":
		return a.findRuins(args)
	}
	return writesDisk(name, args)
}

// cd follows where the line goes.
func (a *analysis) cd(args []word) {
	to := operands(args)
	switch {
	case len(to) == 0:
		a.dir = "~"
	case to[0].gap || to[0].text == "":
		a.dir = ""
	case path.IsAbs(to[0].text) || to[0].text[0] == '~':
		a.dir = to[0].text
	case a.dir != "":
		a.dir = path.Join(a.dir, to[0].text)
	}
}

func (a *analysis) findRuins(args []word) string {
	end := slices.IndexFunc(args, func(w word) bool {
		return len(w.text) > 1 && w.text[0] == '-' && !has("-H -L -P", w.text) || w.text == "(" || w.text == "!"
	})
	if end < 0 {
		return ""
	}
	changes := slices.ContainsFunc(args[end:], func(w word) bool {
		return w.text == "-delete" || has("rm chmod chown chgrp chattr mv shred truncate unlink", programName(w.text))
	})
	from := operands(args[:end])
	if len(from) == 0 {
		from = []word{{text: "."}}
	}
	if !changes {
		return ""
	}
	return a.ruined("find changes all of", from)
}

// ruined names the first word that is the root, a system folder or home.
func (a *analysis) ruined(what string, words []word) string {
	for _, w := range words {
		if w.gap {
			continue
		}
		for _, text := range alternatives(w.text) {
			if a.isSystem(text) {
				return what + " " + w.text
			}
		}
	}
	return ""
}

// alternatives expands the first braces of a word.
func alternatives(text string) []string {
	before, rest, ok := strings.Cut(text, "{")
	inside, after, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		return []string{text}
	}
	var out []string
	for part := range strings.SplitSeq(inside, ",") {
		out = append(out, before+part+after)
	}
	return out
}

// systemFolders are those whose loss is the machine's, and the folders of all
// users.
var systemFolders = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(/|(/private)?/(bin|boot|dev|etc|home|lib|lib32|lib64|libx32|opt|proc|root|run|sbin|srv|sys|usr|var|Users|System|Library|Applications|Volumes)` +
		`|/usr/(bin|include|lib|lib64|libexec|local|sbin|share)|/var/(cache|db|lib|log|spool)|/(home|Users)/[^/]+|~[^/]*|[A-Za-z]:/?(Windows|Users|Program Files)?)$`)
})

// isSystem reports whether a path, with globs for all that is in it, is such a
// folder.
func (a *analysis) isSystem(text string) bool {
	text = strings.ReplaceAll(text, `\`, "/")
	for {
		dir, last := path.Split(text)
		if last == "" || strings.Trim(last, "*?.[]!{},") != "" || !strings.ContainsAny(last, "*?[") {
			break
		}
		if text = dir; dir == "" {
			text = "."
		}
	}
	if text == "" {
		return false
	}
	if !path.IsAbs(text) && text[0] != '~' && a.dir != "" {
		text = a.dir + "/" + text
	}
	return systemFolders().MatchString(path.Clean(text))
}

// disks are block devices, memory, and how Windows names disks.
var disks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(/dev/(sd[a-z]|hd[a-z]|vd[a-z]|xvd|nvme[0-9]|mmcblk|r?disk[0-9]|disk/|mapper/|dm-|md[0-9]|loop[0-9]|sr[0-9]|nbd|rbd|pmem|zram|ram[0-9]|block/|root$|mem$|kmem$|port$)|//\./PhysicalDrive)`)
})

func isDisk(w word) bool {
	if w.gap {
		return false
	}
	text := strings.ReplaceAll(w.text, `\`, "/")
	if strings.HasPrefix(text, "/dev/") {
		text = path.Clean(text)
	}
	return slices.ContainsFunc(alternatives(text), disks().MatchString)
}

// writesDisk tells of programs that write to a disk among their words.
func writesDisk(name string, args []word) string {
	var targets []word
	switch {
	case has("tee shred wipefs blkdiscard mkswap truncate sgdisk sfdisk cryptsetup mke2fs", name), strings.HasPrefix(name, "mkfs"):
		targets = operands(args)
	case has("cp mv install ddrescue", name):
		targets = lastOperand(args)
	case name == "dd":
		for _, w := range args {
			if of, ok := strings.CutPrefix(w.text, "of="); ok {
				targets = append(targets, word{text: of, gap: w.gap})
			}
		}
	}
	if i := slices.IndexFunc(targets, isDisk); i >= 0 {
		return name + " writes to the disk " + targets[i].text
	}
	return ""
}

// hasOption reports whether one of the letters stands in a cluster, or the long
// name, shortened or lengthened.
func hasOption(args []word, letters, long string) bool {
	for _, w := range args {
		switch {
		case w.text == "--":
			return false
		case strings.HasPrefix(w.text, "--"):
			name, _, _ := strings.Cut(w.text, "=")
			if len(name) > 2 && (strings.HasPrefix(long, name) || strings.HasPrefix(name, long)) {
				return true
			}
		case strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, letters):
			return true
		}
	}
	return false
}

func operands(args []word) []word {
	var out []word
	for i, w := range args {
		if w.text == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(w.text, "-") {
			out = append(out, w)
		}
	}
	return out
}

func lastOperand(args []word) []word {
	all := operands(args)
	return all[max(0, len(all)-1):]
}

// maxFunctions bounds how many functions are held against each other.
const maxFunctions = 100

// forkBomb names a function of the statements that starts itself again beside
// itself, "" if there is none.
func (r *reader) forkBomb(stmts []*syntax.Stmt) string {
	bodies := map[string]*syntax.Stmt{}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
				bodies[f.Name.Value] = f.Body
			}
			return true
		})
	}
	if len(bodies) > maxFunctions {
		return "among so many"
	}
	for name, body := range bodies {
		for called := range r.calls(body, true) {
			if called == name || r.reaches(bodies, called, name, map[string]bool{}) {
				return name
			}
		}
	}
	return ""
}

// calls returns the programs named in a statement: with beside set, only those
// that run beside the rest, in the background or in a pipe.
func (r *reader) calls(root syntax.Node, beside bool) map[string]bool {
	out := map[string]bool{}
	if root == nil {
		return out
	}
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if !beside && len(n.Args) > 0 {
				out[r.word(n.Args[0]).text] = true
			}
		case *syntax.Stmt:
			if beside && (n.Background || n.Coprocess) {
				addAll(out, r.calls(n.Cmd, false))
			}
		case *syntax.BinaryCmd:
			if beside && (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) {
				addAll(out, r.calls(n, false))
			}
		}
		return true
	})
	return out
}

func addAll(to, from map[string]bool) {
	for name := range from {
		to[name] = true
	}
}

func (r *reader) reaches(bodies map[string]*syntax.Stmt, from, to string, seen map[string]bool) bool {
	if seen[from] || bodies[from] == nil {
		return false
	}
	seen[from] = true
	for called := range r.calls(bodies[from], false) {
		if called == to || r.reaches(bodies, called, to, seen) {
			return true
		}
	}
	return false
}
