// Package glob matches paths against the globs of tools and ignore files.
//
// It is based on doublestar and adds git's dialect: in git, character classes
// never contain a slash, "a/**" matches the entries of a but not a itself, and
// a brace without alternatives is literal.
package glob

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/text"
)

// Glob is a compiled glob over paths with slashes.
type Glob struct {
	// head is the text of the leading parts without wildcards, with a trailing
	// slash. It is the whole path if text is empty.
	head string
	text string // the other parts
	// heads are the prefixes of text up to each of its slashes, the shortest
	// first, up to the first "**".
	heads []string
	deep  bool // contains "**"
	// last is the glob of the last part if text consists of "**" and that part.
	// suffix is the text after its star if the part is a star followed by plain
	// text. Most globs have this form, and doublestar is slow with them.
	last, suffix string
	literals     []string // the parts without wildcards
}

// Compile compiles a glob without braces. ok is false if it can never match
// because of an unterminated class, a trailing backslash, or two adjacent
// slashes.
func Compile(text string) (g *Glob, ok bool) { return compile(text, false) }

// compile compiles a glob. If literal is set, a class also matches its own text: most
// brackets in the paths of a project are part of a name, such as app/[id]/page.tsx.
func compile(text string, literal bool) (g *Glob, ok bool) {
	parts, ok := translate(bytewise(text), literal)
	if !ok || slices.Contains(parts[1:], "") { // no path has an empty part
		return nil, false
	}
	g = &Glob{}
	leading := 0
	for i, part := range parts {
		if !strings.ContainsAny(part, "*?[") {
			g.literals = append(g.literals, unescape(part))
			if i == leading {
				leading++
			}
		}
	}
	g.head = strings.Join(g.literals[:leading], "/")
	if parts = parts[leading:]; len(parts) == 0 {
		return g, true
	}
	if leading > 0 {
		g.head += "/"
	}
	parts = slices.CompactFunc(parts, func(a, b string) bool { return a == "**" && b == "**" })
	for i, part := range parts {
		g.heads = append(g.heads, strings.Join(parts[:i+1], "/"))
		if g.deep = part == "**"; g.deep {
			break
		}
	}
	if parts[len(parts)-1] == "**" {
		parts = append(parts, "*") // the entries of the folder
	}
	if len(parts) == 2 && parts[0] == "**" {
		g.last = parts[1]
		if rest, ok := strings.CutPrefix(g.last, "*"); ok && !strings.ContainsAny(rest, `*?[\`) {
			g.suffix = rest
		}
	}
	g.text = strings.Join(parts, "/")
	return g, true
}

// Match reports whether the whole path matches.
func (g *Glob) Match(path string) bool {
	rest, ok := strings.CutPrefix(bytewise(path), g.head)
	switch {
	case !ok:
		return false
	case g.text == "":
		return rest == ""
	case g.last == "*":
		return true
	case g.suffix != "":
		return strings.HasSuffix(rest, g.suffix)
	case g.last != "":
		return doublestar.MatchUnvalidated(g.last, rest[strings.LastIndexByte(rest, '/')+1:])
	}
	return doublestar.MatchUnvalidated(g.text, rest)
}

// mayContain reports whether a path below the folder can match.
func (g *Glob) mayContain(folder string) bool {
	folder = bytewise(folder)
	if n := len(folder); n < len(g.head) {
		return g.head[n] == '/' && g.head[:n] == folder
	}
	rest, ok := strings.CutPrefix(folder, g.head)
	if !ok || g.text == "" {
		return false
	}
	depth := strings.Count(rest, "/")
	if depth >= len(g.heads) {
		depth = len(g.heads) - 1
		if !g.deep {
			return false
		}
	}
	if !g.deep && depth == len(g.heads)-1 {
		return false
	}
	return g.heads[depth] == "**" || doublestar.MatchUnvalidated(g.heads[depth], rest)
}

// translate returns the parts of a glob in doublestar's syntax.
func translate(text string, literal bool) (parts []string, ok bool) {
	var part strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case '/':
			parts = append(parts, oneStar(part.String()))
			part.Reset()
		case '{', '}':
			part.WriteString(`\` + string(c))
		case '[':
			class, n := translateClass(text[i+1:])
			if n == 0 {
				return nil, false
			}
			if literal && !strings.ContainsAny(text[i:i+1+n], `/\`) {
				class = "{" + class + "," + escape(text[i:i+1+n]) + "}"
			}
			part.WriteString(class)
			i += n
		case '\\':
			if i++; i == len(text) {
				return nil, false
			}
			if text[i] == '/' {
				i-- // the slash is literal
				continue
			}
			part.WriteString(text[i-1 : i+1])
		default:
			part.WriteByte(c)
		}
	}
	return append(parts, oneStar(part.String())), true
}

// oneStar replaces several stars by "**" if they are a whole part, and by one
// star otherwise.
func oneStar(part string) string {
	if !strings.Contains(part, "**") {
		return part
	}
	if strings.Trim(part, "*") == "" {
		return "**"
	}
	var b strings.Builder
	before := byte(0)
	for i := 0; i < len(part); i++ {
		c := part[i]
		if c == '*' && before == '*' {
			continue
		}
		b.WriteByte(c)
		if before = c; c == '\\' {
			i++ // the escaped character; no pattern ends with a backslash
			b.WriteByte(part[i])
			before = 0
		}
	}
	return b.String()
}

// bytewise converts each byte to a character: git's wildcards match bytes.
func bytewise(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			runes := make([]rune, len(s))
			for i := range len(s) {
				runes[i] = rune(s[i])
			}
			return string(runes)
		}
	}
	return s
}

// escape escapes every ASCII character.
func escape(part string) string {
	var b strings.Builder
	for _, r := range part {
		if r < utf8.RuneSelf {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unescape removes backslash escapes.
func unescape(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '\\' && i+1 < len(part) {
			i++
		}
		b.WriteByte(part[i])
	}
	return b.String()
}

// Pattern is a glob over paths relative to a folder, with braces. Without a
// slash it matches in every subfolder. A class such as [id] also matches its own text.
type Pattern struct {
	globs []*Glob
	fold  bool // ignore case
}

// CompilePattern compiles a pattern. If fold is set, case is ignored. The error
// describes what is wrong with the pattern.
func CompilePattern(pattern string, fold bool) (*Pattern, error) {
	alternatives, err := expandBraces(filepath.ToSlash(pattern))
	if err != nil {
		return nil, err
	}
	p := &Pattern{fold: fold}
	for _, alt := range alternatives {
		alt = p.folded(alt)
		if !strings.Contains(alt, "/") {
			alt = "**/" + alt
		}
		parts := slices.DeleteFunc(strings.Split(alt, "/"), func(part string) bool { return part == "" || part == "." })
		if slices.Contains(parts, "..") {
			return nil, fmt.Errorf("pattern %s leads outside through \"..\"", text.Quote(pattern))
		}
		g, ok := compile(strings.Join(parts, "/"), true)
		if !ok {
			return nil, fmt.Errorf(
				"pattern %s ends inside [ or after \\; close the bracket, or write \\[ for the character",
				text.Quote(pattern))
		}
		p.globs = append(p.globs, g)
	}
	return p, nil
}

// folded returns the form of a pattern or path that is compared: composed, because file
// systems keep names either way.
func (p *Pattern) folded(s string) string {
	s = text.Composed(s)
	if p.fold {
		return strings.ToLower(s)
	}
	return s
}

// Match reports whether the path matches.
func (p *Pattern) Match(path string) bool {
	path = p.folded(path)
	return slices.ContainsFunc(p.globs, func(g *Glob) bool { return g.Match(path) })
}

// MayContain reports whether something below the folder may match.
func (p *Pattern) MayContain(folder string) bool {
	folder = p.folded(folder)
	return slices.ContainsFunc(p.globs, func(g *Glob) bool { return g.mayContain(folder) })
}

// Names reports whether the pattern contains the name literally. Ignore files
// do not apply to names that are spelled out.
func (p *Pattern) Names(name string) bool {
	name = bytewise(p.folded(name))
	return slices.ContainsFunc(p.globs, func(g *Glob) bool { return slices.Contains(g.literals, name) })
}

// Quote escapes what has a meaning in patterns.
func Quote(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[]{},\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// maxAlternatives limits the number of patterns to which the braces of one
// pattern may expand.
const maxAlternatives = 1024

// expandBraces returns the patterns to which a pattern with {a,b} expands, or
// the pattern itself if it has no braces. Braces may be nested. Without a comma
// or a closing brace they are literal.
func expandBraces(pattern string) ([]string, error) {
	out := []string{""}
	for pattern != "" {
		open, end, choices := firstBraces(pattern)
		if choices == nil {
			out = combine(out, []string{pattern})
			break
		}
		var middle []string
		for _, c := range choices {
			alternatives, err := expandBraces(c)
			if err != nil {
				return nil, err
			}
			middle = append(middle, alternatives...)
		}
		if len(out)*len(middle) > maxAlternatives {
			return nil, fmt.Errorf("braces expand to more than %d patterns; use fewer", maxAlternatives)
		}
		out = combine(combine(out, []string{pattern[:open]}), middle)
		pattern = pattern[end:]
	}
	return out, nil
}

func combine(heads, tails []string) []string {
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out
}

// firstBraces finds the first complete {a,b}. It returns where it starts and
// ends, and its choices, which are nil if there are no braces.
func firstBraces(s string) (open, end int, choices []string) {
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				open, from, choices = i, i+1, nil
			}
		case ',':
			if depth == 1 {
				choices = append(choices, s[from:i])
				from = i + 1
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth == 0 && choices != nil {
				return open, i + 1, append(choices, s[from:i])
			}
		}
	}
	return 0, 0, nil
}
