package policy

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/git"
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

	absolute factOf[*Rule, []string] // see [places.globs]
}

// name returns the forms of a path of a call.
func (w *places) name(p string) pathname {
	out := pathname{absolute: absolutePath(w.workspace, p), certain: isInside(p) || path.IsAbs(filepath.ToSlash(p))}
	out.real = out.absolute
	if w.realWorkspace != w.workspace {
		out.real = absolutePath(w.realWorkspace, p)
	}
	for _, name := range []string{out.absolute, out.real} {
		out.lower = appendLower(out.lower, name)
	}
	return out
}

// match reports whether the path of a rule matches a path of the call. Unless
// the rule loosens, case is ignored because the file system may ignore it, a
// matching folder includes its contents, and an invalid glob matches every path.
func (w *places) match(r *Rule, p pathname) bool {
	if r.isNarrow() {
		return p.certain && w.allows(r, p)
	}
	for _, glob := range w.globs(r) {
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

// allows reports whether a rule that loosens matches a path, also when the links in the path of
// the workspace are resolved: a link must not extend what is allowed to another folder.
func (w *places) allows(r *Rule, p pathname) bool {
	glob := absolutePath(QuoteGlob(w.root), r.Path)
	ok, err := doublestar.Match(glob, p.absolute)
	if !ok || err != nil || p.real == p.absolute {
		return ok && err == nil
	}
	if rest, below := strings.CutPrefix(glob, QuoteGlob(w.root)+"/"); below {
		glob = QuoteGlob(w.realRoot) + "/" + rest
	}
	ok, err = doublestar.Match(glob, p.real)
	return ok && err == nil
}

// mayHold reports whether a folder contains, or may contain, what the path of a rule names.
func (w *places) mayHold(folder string, r *Rule) bool {
	literal, _ := cutGlob(filepath.ToSlash(r.Path))
	exists := func(base string) bool {
		_, err := os.Lstat(filepath.FromSlash(absolutePath(base, literal)))
		return err == nil
	}
	if !exists(w.root) && !exists(w.workspace) {
		return false
	}
	names := w.name(folder).lower
	for _, glob := range w.globs(r) {
		literal, rest := cutGlob(glob)
		literal = path.Clean(literal)
		if slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(literal, strings.TrimSuffix(name, "/")+"/") || literal == name && rest != ""
		}) {
			return true
		}
	}
	return false
}

// globs returns the absolute forms of the path of a rule that does not loosen, in lower case. The
// path is resolved against the project root and the workspace, each also with links resolved in the
// part before the first wildcard.
func (w *places) globs(r *Rule) []string {
	return w.absolute.get(r, func() (out []string) {
		for _, base := range []string{w.root, w.workspace} {
			glob := absolutePath(QuoteGlob(base), r.Path)
			out = appendLower(out, glob)
			literal, rest := cutGlob(glob)
			if real := realPath(path.Clean(literal)); real != path.Clean(literal) {
				out = appendLower(out, path.Join(QuoteGlob(real), rest))
			}
		}
		return out
	})
}

// cutGlob divides a glob into the folders before the first wildcard and what follows them.
func cutGlob(glob string) (literal, rest string) {
	if i := strings.IndexAny(glob, globMeta); i >= 0 {
		at := strings.LastIndexByte(glob[:i], '/') + 1
		return glob[:at], glob[at:]
	}
	return glob, ""
}

// realPath resolves the links in an absolute path with slashes, as far as it exists.
func realPath(p string) string { return filepath.ToSlash(git.ResolveLinks(filepath.FromSlash(p))) }

// appendLower appends a path or glob in lower case, and as file systems that ignore case may read
// it, without duplicates.
func appendLower(to []string, s string) []string {
	return text.AppendNew(to, strings.ToLower(s), text.Folded(s))
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

// QuoteGlob returns a glob that matches exactly the text.
func QuoteGlob(text string) string {
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

// isInside reports whether a workspace-relative path stays inside the workspace
// lexically. The tools themselves check symbolic links.
func isInside(p string) bool {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.Contains(p, ":")
}
