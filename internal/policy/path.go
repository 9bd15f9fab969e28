package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pathname is a path of a call in the forms that rules are compared with.
type pathname struct {
	absolute, lower string
	certain         bool // does not leave the workspace with ".." and names no drive
}

func (d *decision) pathname(p string) pathname {
	absolute := absolutePath(filepath.ToSlash(d.policy.Workspace), p)
	return pathname{absolute: absolute, lower: strings.ToLower(absolute), certain: inside(p) || path.IsAbs(filepath.ToSlash(p))}
}

// pathMatch reports whether the path of a rule matches a path of the call. Unless
// the rule loosens, case is ignored because the file system may ignore it, a
// matching folder includes its contents, and an invalid glob matches every path.
func (d *decision) pathMatch(r *Rule, p pathname) bool {
	if r.isNarrow() {
		if !p.certain || !r.literals.in(p.absolute) {
			return false
		}
		ok, err := doublestar.Match(d.absoluteGlob(r.Path), p.absolute)
		return ok && err == nil
	}
	if !r.literals.in(p.lower) {
		return false
	}
	glob := strings.ToLower(d.absoluteGlob(r.Path))
	ok, err := doublestar.Match(glob, p.lower)
	if err != nil || ok {
		return true
	}
	ok, _ = doublestar.Match(strings.TrimSuffix(glob, "/")+"/**", p.lower)
	return ok
}

// absoluteGlob returns the absolute form of a glob that is relative to the
// workspace.
func (d *decision) absoluteGlob(glob string) string {
	return absolutePath(quoteGlob(filepath.ToSlash(d.policy.Workspace)), glob)
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

// quoteGlob returns a glob that matches exactly the text.
func quoteGlob(text string) string {
	const meta = `*?[]{}\`
	if !strings.ContainsAny(text, meta) {
		return text
	}
	var out strings.Builder
	for i := range len(text) {
		if strings.IndexByte(meta, text[i]) >= 0 {
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

func (l *literals) in(p string) bool {
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
	for part := range strings.FieldsFuncSeq(strings.TrimLeft(glob, "./"), func(r rune) bool { return r == '*' || r == '?' || r >= 0x80 }) {
		if part = strings.Trim(part, "/"); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
