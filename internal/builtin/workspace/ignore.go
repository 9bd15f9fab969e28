package workspace

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/text"
)

// maxIgnoreFile limits how much of an ignore file is read, in bytes.
const maxIgnoreFile = 1 << 20

// ignoreNames are the names of ignore files, which list what tools skip in their
// folder, in order of increasing precedence.
var ignoreNames = []string{".gitignore", ".ignore", ".rgignore", ".geminiignore"}

// IgnoreRules are the rules of a folder's ignore files, chained to those of its
// parent folders. A nil *IgnoreRules ignores nothing. Folders without ignore
// files share the rules of their parent.
//
// As in ripgrep, ignore files for one program override those for search tools, and
// those override git's, wherever they are in the tree: there is a list for each.
type IgnoreRules [3]*ignoreList

// listOf returns the list to which the file ignoreNames[i] belongs.
func (g *IgnoreRules) listOf(i int) **ignoreList { return &g[min(i, len(g)-1)] }

// ignoreList has the rules of one file. next has those of the parent folders.
type ignoreList struct {
	base  string // the folder of the file, relative to the workspace, which is ""
	above string // for a file above the workspace: the workspace relative to its folder
	rules []ignoreRule
	next  *ignoreList
}

// ignoreRule is one line of an ignore file; see gitignore(5).
type ignoreRule struct {
	negated bool
	dirOnly bool
	byName  bool   // matched against the last part of the path only
	suffix  string // the suffix in a rule such as *.o; then glob is nil
	prefix  string // the text before the first wildcard
	glob    *glob.Glob
}

// Ignored reports whether the entry at path, relative to the workspace, is
// excluded. An excluded folder must not be entered.
func (g *IgnoreRules) Ignored(path string, isDir bool) bool {
	if g == nil {
		return false
	}
	for i := len(g) - 1; i >= 0; i-- {
		if decided, out := g[i].decide(path, isDir); decided {
			return out
		}
	}
	return false
}

// decide tries the nearest list first, and the last rule of each list first.
func (l *ignoreList) decide(path string, isDir bool) (decided, ignored bool) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for ; l != nil; l = l.next {
		below := path
		if l.base != "" {
			below = path[len(l.base)+1:]
		} else if l.above != "" {
			below = l.above + "/" + path
		}
		for i := len(l.rules) - 1; i >= 0; i-- {
			if r := &l.rules[i]; r.matches(below, name, isDir) {
				return true, !r.negated
			}
		}
	}
	return false, false
}

func (r *ignoreRule) matches(below, name string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	if r.byName {
		below = name
	}
	switch {
	case r.glob != nil:
		return strings.HasPrefix(below, r.prefix) && r.glob.Match(below[len(r.prefix):])
	case r.suffix != "":
		return strings.HasSuffix(below, r.suffix)
	}
	return below == r.prefix
}

// parseIgnore parses an ignore file as git does.
func parseIgnore(data []byte) []ignoreRule {
	var rules []ignoreRule
	for line := range bytes.SplitSeq(text.WithoutMark(data), []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if rule, ok := parseIgnoreLine(trimSpaces(string(line))); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

// trimSpaces removes trailing spaces, except one after a backslash.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
			end = min(i+1, len(line))
		case ' ':
		default:
			end = i + 1
		}
	}
	return line[:end]
}

// parseIgnoreLine parses one line as a rule. ok is false for comments, empty
// lines and patterns that cannot match.
func parseIgnoreLine(line string) (r ignoreRule, ok bool) {
	if line == "" || line[0] == '#' || strings.ContainsRune(line, 0) {
		return r, false
	}
	if line[0] == '!' {
		r.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, line[:len(line)-1]
	}
	r.byName = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	wild := strings.IndexAny(line, `*?[\`)
	if wild < 0 {
		r.prefix = line
		return r, true
	}
	if r.byName && len(line) > 1 && !strings.ContainsAny(line[1:], `*?[\`) && line[0] == '*' {
		r.suffix = line[1:]
		return r, true
	}
	// As in git, the text before the first wildcard is compared literally, and
	// the pattern starts after it.
	r.prefix = line[:wild]
	r.glob, ok = glob.Compile(line[wild:])
	return r, ok
}

// Enter returns the rules for a folder: those of its parent and its own. names
// are the folder's entries. path is relative to the workspace, which is "".
func (g *IgnoreRules) Enter(dir *Folder, path string, names []fs.DirEntry) *IgnoreRules {
	present := 0 // a bit for each of ignoreNames
	for _, e := range names {
		if e.Name()[0] == '.' && e.Type() == 0 { // most names have no dot
			if i := slices.Index(ignoreNames, e.Name()); i >= 0 {
				present |= 1 << i
			}
		}
	}
	if present == 0 {
		return g
	}
	out := &IgnoreRules{}
	if g != nil {
		*out = *g
	}
	for i, name := range ignoreNames {
		if present&(1<<i) != 0 {
			to := out.listOf(i)
			*to = &ignoreList{base: path, rules: parseIgnore(readIgnore(dir, name)), next: *to}
		}
	}
	return out
}

// readIgnore reads an ignore file of a folder. As in git, links are not
// followed, and a file that cannot be read has no rules.
func readIgnore(dir *Folder, name string) []byte {
	f, err := dir.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return nil
	}
	return data
}

// IgnoreRules returns the rules that apply in the folder at rel, without those
// of its own files: the rules of its parent folders.
func (w *Dir) IgnoreRules(root *os.Root, rel string) *IgnoreRules {
	g := rulesAbove(w.real, w.user)
	parts := split(rel)
	for i := range parts {
		at := strings.Join(parts[:i], "/")
		dir, err := OpenFolder(root, OrDot(at))
		if err != nil {
			return g
		}
		if found, err := dir.Entries(); err == nil {
			g = g.Enter(dir, at, found)
		}
		dir.Close()
	}
	return g
}

// OrDot returns rel as a path for package os, which calls the workspace ".".
func OrDot(rel string) string {
	return cmp.Or(rel, ".")
}

// rulesAbove returns the rules for the whole workspace: those of the user's
// global excludes, of the repository that contains the workspace, and of the
// ignore files between the top of that repository and the workspace.
func rulesAbove(workspace string, user git.User) *IgnoreRules {
	out := &IgnoreRules{}
	add := func(i int, above, file string) {
		if rules := parseIgnore(git.ReadFile(file)); len(rules) > 0 {
			to := out.listOf(i)
			*to = &ignoreList{above: above, rules: rules, next: *to}
		}
	}
	top, above := repository(workspace, user)
	add(0, above, globalExcludes(user))
	if top == "" {
		return out
	}
	folders := git.Folders(top)
	add(0, above, filepath.Join(folders[len(folders)-1], "info", "exclude"))
	for above != "" {
		for i, name := range ignoreNames {
			add(i, above, filepath.Join(top, name))
		}
		var next string
		next, above, _ = strings.Cut(above, "/")
		top = filepath.Join(top, next)
	}
	return out
}

// repository returns the top of the repository that contains the workspace, and
// the workspace relative to it; top is "" if there is no repository. A repository
// in the home directory does not apply to the projects below it, because it often
// ignores everything.
func repository(workspace string, user git.User) (top, above string) {
	home, _ := user.Folders()
	home = git.ResolveLinks(home)
	for dir := workspace; dir == workspace || dir != home; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if dir == workspace {
				return dir, ""
			}
			rel, _ := filepath.Rel(dir, workspace) // both are absolute
			return dir, filepath.ToSlash(rel)
		}
		if dir == filepath.Dir(dir) {
			return "", ""
		}
	}
	return "", ""
}

// globalExcludes returns the path of the user's own ignore file: git's
// core.excludesFile, or git/ignore in the configuration folder.
func globalExcludes(user git.User) (found string) {
	home, config := user.Folders()
	for _, file := range slices.Backward(user.Configs()) {
		for s := range git.Settings(string(git.ReadFile(file))) {
			if s.Name == "core.excludesfile" {
				found = s.Value
			}
		}
		if found != "" {
			return expand.Home(found, home)
		}
	}
	return filepath.Join(config, "git", "ignore")
}
