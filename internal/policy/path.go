package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pathname is a path of a call as rules compare it.
type pathname struct {
	absolute, lower string
	certain         bool // neither leaves the workspace by ".." nor names a drive
}

func (d *decision) pathname(p string) pathname {
	absolute := absolutePath(filepath.ToSlash(d.policy.Workspace), p)
	return pathname{absolute: absolute, lower: strings.ToLower(absolute), certain: inside(p) || path.IsAbs(filepath.ToSlash(p))}
}

// pathMatch compares the path of a rule with a path of the call. Unless the rule
// loosens, case is ignored, since the file system may do so, a matching folder
// covers what is in it, and an invalid glob matches everything.
func (d *decision) pathMatch(r *Rule, p pathname) bool {
	if r.isNarrow() {
		if !p.certain || !r.texts.in(p.absolute) {
			return false
		}
		ok, err := doublestar.Match(d.absoluteGlob(r.Path), p.absolute)
		return ok && err == nil
	}
	if !r.texts.in(p.lower) {
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

// absoluteGlob returns a glob relative to the workspace as one of absolute paths.
func (d *decision) absoluteGlob(glob string) string {
	return absolutePath(quoteGlob(filepath.ToSlash(d.policy.Workspace)), glob)
}

// absolutePath returns an absolute path with slashes only, as the workspace has
// them already.
func absolutePath(workspace, p string) string {
	slashed := filepath.ToSlash(p)
	if path.IsAbs(slashed) || filepath.IsAbs(p) {
		return path.Join("/", slashed)
	}
	return path.Join("/", workspace, slashed)
}

// quoteGlob returns a glob that matches only the text.
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

// texts is a list of which every path that a rule's glob matches, and every path
// below one, contains at least one. nil means that nothing is known.
type texts []string

const maxTexts = 16

func (t *texts) in(p string) bool {
	return t == nil || slices.ContainsFunc(*t, func(text string) bool { return strings.Contains(p, text) })
}

// textsOf finds the texts of a glob. An invalid one has none.
func textsOf(glob string) *texts {
	glob = path.Clean(filepath.ToSlash(glob))
	if glob == "." || !doublestar.ValidatePattern(glob) {
		return nil
	}
	globs := []string{glob}
	if i := strings.IndexAny(glob, `[\`); i >= 0 {
		globs[0], _, _ = strings.Cut(glob[:i], "{")
	}
	var out texts
	for len(globs) > 0 {
		if len(globs) > maxTexts {
			return nil
		}
		next := globs[0]
		globs = globs[1:]
		end := strings.IndexByte(next, '}')
		if end < 0 {
			text := longestText(next)
			if text == "" {
				return nil
			}
			out = append(out, text)
			continue
		}
		begin := strings.LastIndexByte(next[:end], '{')
		for alternative := range strings.SplitSeq(next[begin+1:end], ",") {
			globs = append(globs, next[:begin]+alternative+next[end+1:])
		}
	}
	return &out
}

// longestText returns the longest ASCII text between the wildcards of a glob that
// has no groups. It has no slashes around it, because "a/**" matches "a".
func longestText(glob string) string {
	longest := ""
	for part := range strings.FieldsFuncSeq(strings.TrimLeft(glob, "./"), func(r rune) bool { return r == '*' || r == '?' || r >= 0x80 }) {
		if part = strings.Trim(part, "/"); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
