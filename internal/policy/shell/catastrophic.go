package shell

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/lazy"
)

// location is the working directory at one point of a line.
type location struct {
	dir   string // the folder that cd changed to; "" if there was no cd or its target is unknown
	start string // the folder in which the line starts; "" if it is unknown or the target of a cd is
	glob  bool   // dir has a pattern in it
}

// ruins returns the reason why a command would ruin the machine, or "" if it would
// not. A command does if it writes to a disk or changes everything in the root
// folder, a system folder or a home folder.
func (l *location) ruins(name string, args []word) string {
	switch name {
	case "cd", "pushd", "popd":
		l.cd(name, args)
	case "chmod", "chown", "chgrp", "chattr", "chcon", "setfacl", "rm":
		if tableOf(name).given("recursive", args) {
			return l.ruined(name+" changes all of", operands(args))
		}
	case "mv":
		from := operands(args)
		if len(from) > 1 && !tableOf(name).given("target-directory", args) {
			from = from[:len(from)-1]
		}
		if why := l.ruined("mv moves all of", from); why != "" {
			return why
		}
	case "rsync":
		if slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "--del") }) {
			return l.ruined("rsync deletes in", lastOperand(args))
		}
	case "find":
		return l.findRuins(args)
	}
	return l.writesDisk(name, args)
}

// cd updates the location after a cd with these arguments, or after a pushd or popd.
func (l *location) cd(name string, args []word) {
	to := operands(args)
	isOld := func(w word) bool { return w.text == "-" } // where the cd before started
	switch {
	case len(to) == 0 && name == "cd" && !slices.ContainsFunc(args, isOld):
		l.dir, l.glob = "~", false
	case len(to) == 0 || name == "popd" || to[0].gap || to[0].text == "" || name == "pushd" && to[0].text[0] == '+':
		*l = location{}
	case path.IsAbs(to[0].text) || to[0].text[0] == '~':
		l.dir, l.glob = to[0].text, to[0].glob
	case l.dir != "" || l.start != "":
		l.dir, l.glob = path.Join(cmp.Or(l.dir, l.start), to[0].text), l.glob || to[0].glob
	}
	if len(l.dir) > maxFolder {
		*l = location{}
	}
}

// maxFolder limits the length of folders that are followed, in bytes: looking up files in a deep
// folder is slow.
const maxFolder = 512

func (l *location) findRuins(args []word) string {
	from, rest := findFolders(args)
	if !slices.ContainsFunc(rest, func(w word) bool {
		return w.text == "-delete" || hasWord("rm chmod chown chgrp chattr mv shred truncate unlink", programName(w.text))
	}) {
		return ""
	}
	return l.ruined("find changes all of", from)
}

// findFolders returns the folders that find searches, and the words behind them.
func findFolders(args []word) (folders, rest []word) {
	args = args[findOptions(args):]
	end := slices.IndexFunc(args, func(w word) bool {
		return len(w.text) > 1 && w.text[0] == '-' || w.text == "(" || w.text == "!"
	})
	if end < 0 {
		end = len(args)
	}
	if folders = operands(args[:end]); len(folders) == 0 {
		folders = []word{{text: ".", known: true}}
	}
	return folders, args[end:]
}

// findOptions returns the number of words before the folders that find searches:
// its options in the GNU and BSD versions.
func findOptions(args []word) int {
	i := 0
	for i < len(args) {
		switch text := args[i].text; {
		case text == "-D":
			i++
		case text == "--", strings.HasPrefix(text, "-O"),
			len(text) > 1 && text[0] == '-' && strings.Trim(text[1:], "HLPEXdfsx") == "":
		default:
			return i
		}
		i++
	}
	return len(args)
}

// ruined returns what, followed by the first word that names the root folder, a system folder or a
// home folder, or "" if none does.
func (l *location) ruined(what string, words []word) string {
	for _, w := range words {
		if w.gap {
			continue
		}
		if l.isSystem(w.text) {
			return what + " " + w.text
		}
	}
	return ""
}

// systemFolders matches folders that the system needs to work, and home folders.
var systemFolders = lazy.NewRegexp(`^(/|(/private)?/(bin|boot|dev|etc|home|lib|lib32|lib64|libx32|opt|proc|root|run|sbin|srv|sys|usr|var|Users|System|Library|Applications|Volumes)` +
	`|/usr/(bin|include|lib|lib64|libexec|local|sbin|share)|/var/(cache|db|lib|log|spool)|/(home|Users)/[^/]+|~[^/]*|[A-Za-z]:/?(Windows|Users|Program Files)?)$`)

// isSystem reports whether a path names a system folder or, with a glob such as
// /etc/*, everything in one.
func (l *location) isSystem(text string) bool {
	text = strings.ReplaceAll(text, `\`, "/")
	for {
		dir, last := path.Split(text)
		if last == "" || strings.Trim(last, "*?.[]!") != "" || !strings.ContainsAny(last, "*?[") {
			break
		}
		if text = dir; dir == "" {
			text = "."
		}
	}
	if text == "" {
		return false
	}
	// only paths out of the folder, because a line may change everything inside it
	if l.dir == "" && l.start != "" && strings.HasPrefix(path.Clean(text), "..") {
		text = l.start + "/" + text
	}
	return systemFolders.Get().MatchString(path.Clean(l.join(text)))
}

// join returns a path with the folder that cd changed to before it if it is relative.
func (l *location) join(text string) string {
	if l.dir == "" || path.IsAbs(text) || strings.HasPrefix(text, "~") {
		return text
	}
	return l.dir + "/" + text
}

// disks matches the paths of block devices, of memory devices and of disks on
// Windows.
var disks = lazy.NewRegexp(`^(/dev/(sd[a-z]|hd[a-z]|vd[a-z]|xvd|nvme[0-9]|mmcblk|r?disk[0-9]|disk/|mapper/|dm-|md[0-9]|loop[0-9]|sr[0-9]|nbd|rbd|pmem|zram|ram[0-9]|block/|root$|mem$|kmem$|port$)|//\./PhysicalDrive)`)

func (l *location) isDisk(w word) bool {
	if w.gap {
		return false
	}
	text := l.join(strings.ReplaceAll(w.text, `\`, "/"))
	// path.Clean makes another path of //./PhysicalDrive0.
	return disks.Get().MatchString(text) || disks.Get().MatchString(path.Clean(text))
}

// writesDisk returns the reason why a program writes to a disk that its arguments
// name, or "" if it does not.
func (l *location) writesDisk(name string, args []word) string {
	var targets []word
	switch {
	case hasWord("tee shred wipefs blkdiscard mkswap truncate sgdisk sfdisk cryptsetup mke2fs", name),
		strings.HasPrefix(name, "mkfs"):
		targets = operands(args)
	case hasWord("tar bsdtar", name): // the archive
		targets = operands(tableOf("tar").dashed(args))
	case hasWord("cp mv install ddrescue", name):
		targets = lastOperand(args)
	case name == "dd":
		for _, w := range args {
			if of, ok := strings.CutPrefix(w.text, "of="); ok {
				targets = append(targets, word{text: of, gap: w.gap})
			}
		}
	}
	if i := slices.IndexFunc(targets, l.isDisk); i >= 0 {
		return name + " writes to the disk " + targets[i].text
	}
	return ""
}

// maxFunctions is the maximum number of functions that are analyzed.
const maxFunctions = 100

// forkBomb returns the reason why the statements may be a fork bomb: a function
// that starts a second copy of itself while it runs. It returns "" if they are
// not.
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
		return fmt.Sprintf("the line declares more than %d functions", maxFunctions)
	}
	for name, body := range bodies {
		for called := range r.calls(body, true) {
			if called == name || r.reaches(bodies, called, name, map[string]bool{}) {
				return "the function " + name + " starts copies of itself"
			}
		}
	}
	return ""
}

// calls returns the programs that a statement names. If beside is set, it returns
// only those that run concurrently with other commands, in the background or in a
// pipe.
func (r *reader) calls(root syntax.Node, beside bool) map[string]bool {
	out := map[string]bool{}
	if root == nil {
		return out
	}
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if words := r.words(n.Args); !beside && len(words) > 0 {
				out[words[0].text] = true
			}
		case *syntax.Stmt:
			if beside && (n.Background || n.Coprocess) {
				maps.Copy(out, r.calls(n.Cmd, false))
			}
		case *syntax.BinaryCmd:
			if beside && (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) {
				maps.Copy(out, r.calls(n, false))
			}
		}
		return true
	})
	return out
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
