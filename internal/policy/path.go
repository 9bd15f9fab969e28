package policy

import (
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
}

// globs returns the absolute forms of the path of a rule that does not loosen, in lower case. The
// path is resolved against the project root and the workspace, each also with links resolved in the
// part before the first wildcard.
func (w *places) globs(rule string) (out []string) {
	add := func(glob string) { out = appendLower(out, glob) }
	for _, base := range []string{w.root, w.workspace} {
		glob := absolutePath(QuoteGlob(base), rule)
		add(glob)
		literal, rest := cutGlob(glob)
		if real := realPath(path.Clean(literal)); real != path.Clean(literal) {
			add(path.Join(QuoteGlob(real), rest))
		}
	}
	return out
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

// literals is a list of strings. Every path that a glob matches, and every path
// below it, contains at least one of them. nil means that any path may match.
type literals []string

const maxLiterals = 16

func (l literals) occurIn(p string) bool {
	return l == nil || slices.ContainsFunc(l, func(text string) bool { return strings.Contains(p, text) })
}

// literalsOf returns the literals of a glob. An invalid glob has none.
func literalsOf(glob string) literals {
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
	return out
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

// inside reports whether a workspace-relative path stays inside the workspace
// lexically. The tools themselves check symbolic links.
func inside(p string) bool {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.Contains(p, ":")
}
