package policy

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/text"
)

// pathname is a path of a call in the forms that rules are compared with.
type pathname struct {
	absolute string
	real     string   // absolute with the links in the path of the workspace resolved
	lower    []string // both in lower case, without duplicates
	certain  bool     // does not leave the workspace with ".." and names no drive
}

// places are the folders that paths are relative to, absolute and with slashes.
type places struct {
	root, workspace         string
	realRoot, realWorkspace string // with links resolved
}

// where returns the folders that paths are relative to.
func (f *facts) where() *places {
	return f.places.get(func() *places {
		workspace := filepath.ToSlash(f.policy.Workspace)
		p := &places{root: filepath.ToSlash(cmp.Or(f.policy.Root, f.policy.Workspace)), workspace: workspace}
		p.realRoot, p.realWorkspace = realPath(p.root), realPath(workspace)
		return p
	})
}

// realPath resolves the links in the longest part of an absolute path that exists.
func realPath(p string) string {
	if p == "" {
		return ""
	}
	for dir, rest := p, ""; ; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(filepath.FromSlash(dir)); err == nil {
			return path.Join(filepath.ToSlash(real), rest)
		}
		if dir == path.Dir(dir) {
			return p
		}
	}
}

func (f *facts) pathname(p string) pathname {
	w := f.where()
	out := pathname{absolute: absolutePath(w.workspace, p), certain: inside(p) || path.IsAbs(filepath.ToSlash(p))}
	out.real = out.absolute
	if w.realWorkspace != w.workspace {
		out.real = absolutePath(w.realWorkspace, p)
	}
	for _, name := range []string{out.absolute, out.real} {
		out.lower = appendLower(out.lower, name)
	}
	return out
}

// appendLower appends a path or a glob in lower case and as file systems that ignore case may
// read it, each if it is new.
func appendLower(to []string, s string) []string {
	for _, form := range []string{strings.ToLower(s), text.Folded(s)} {
		if !slices.Contains(to, form) {
			to = append(to, form)
		}
	}
	return to
}

// pathMatch reports whether the path of a rule matches a path of the call. Unless
// the rule loosens, case is ignored because the file system may ignore it, a
// matching folder includes its contents, and an invalid glob matches every path.
func (f *facts) pathMatch(r *Rule, p pathname) bool {
	if r.isNarrow() {
		return p.certain && r.literals.occurIn(p.absolute) && f.allowsPath(r, p)
	}
	w := f.where()
	if w.root == w.workspace && !slices.ContainsFunc(p.lower, r.literals.occurIn) {
		return false // in another workspace, links may lead to a path without the literals
	}
	for _, glob := range f.absolute.get(r, func() []string { return w.globs(r) }) {
		for _, name := range p.lower {
			ok, err := doublestar.Match(glob, name)
			if err != nil || ok {
				return true
			}
			if ok, _ = doublestar.Match(strings.TrimSuffix(glob, "/")+"/**", name); ok {
				return true
			}
		}
	}
	return false
}

// allowsPath reports whether a rule that loosens matches a path, also with the links in the path
// of the workspace resolved: a link must not lead what is allowed to another folder.
func (f *facts) allowsPath(r *Rule, p pathname) bool {
	w := f.where()
	glob := absolutePath(quoteGlob(w.root), r.Path)
	ok, err := doublestar.Match(glob, p.absolute)
	if !ok || err != nil || p.real == p.absolute {
		return ok && err == nil
	}
	if rest, below := strings.CutPrefix(glob, quoteGlob(w.root)+"/"); below {
		glob = quoteGlob(w.realRoot) + "/" + rest
	}
	ok, err = doublestar.Match(glob, p.real)
	return ok && err == nil
}

// globs returns the absolute forms of the path of a rule that does not loosen, in lower case: as
// it counts from the project root and from the workspace, both also with links resolved in what
// precedes the first wildcard.
func (w *places) globs(r *Rule) (out []string) {
	add := func(glob string) { out = appendLower(out, glob) }
	for _, base := range []string{w.root, w.workspace} {
		glob := absolutePath(quoteGlob(base), r.Path)
		add(glob)
		literal, rest := glob, ""
		if i := strings.IndexAny(glob, globMeta); i >= 0 {
			at := strings.LastIndexByte(glob[:i], '/') + 1
			literal, rest = glob[:at], glob[at:]
		}
		if real := realPath(path.Clean(literal)); real != path.Clean(literal) {
			add(path.Join(quoteGlob(real), rest))
		}
	}
	return out
}

// absolutePath returns an absolute path with slashes. workspace must have slashes
// already.
func absolutePath(workspace, p string) string {
	slashed := filepath.ToSlash(p)
	if path.IsAbs(slashed) || filepath.IsAbs(p) {
		return path.Join("/", slashed)
	}
	return path.Join("/", workspace, slashed)
}

// globMeta are the characters with a meaning in globs.
const globMeta = `*?[]{}\`

// quoteGlob returns a glob that matches exactly the text.
func quoteGlob(text string) string {
	if !strings.ContainsAny(text, globMeta) {
		return text
	}
	var out strings.Builder
	for i := range len(text) {
		if strings.IndexByte(globMeta, text[i]) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// literals is a list of strings. Every path that a glob matches, and every path
// below it, contains at least one of them. nil means that any path may match.
type literals []string

const maxLiterals = 16

func (l *literals) occurIn(p string) bool {
	return l == nil || slices.ContainsFunc(*l, func(text string) bool { return strings.Contains(p, text) })
}

// literalsOf returns the literals of a glob. An invalid glob has none.
func literalsOf(glob string) *literals {
	glob = path.Clean(filepath.ToSlash(glob))
	if glob == "." || !doublestar.ValidatePattern(glob) {
		return nil
	}
	globs := []string{glob}
	if i := strings.IndexAny(glob, `[\`); i >= 0 {
		globs[0], _, _ = strings.Cut(glob[:i], "{")
	}
	var out literals
	for len(globs) > 0 {
		if len(globs) > maxLiterals {
			return nil
		}
		next := globs[0]
		globs = globs[1:]
		end := strings.IndexByte(next, '}')
		if end < 0 {
			out = append(out, longestLiteral(next)) // "" is in every path
			continue
		}
		begin := strings.LastIndexByte(next[:end], '{')
		for alternative := range strings.SplitSeq(next[begin+1:end], ",") {
			globs = append(globs, next[:begin]+alternative+next[end+1:])
		}
	}
	return &out
}

// longestLiteral returns the longest ASCII text between the wildcards of a glob
// without braces. It is trimmed of slashes, because "a/**" matches "a".
func longestLiteral(glob string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(strings.TrimLeft(glob, "./"),
		func(r rune) bool { return r == '*' || r == '?' || r >= 0x80 }) {
		if part = strings.Trim(part, "/"); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
