// Package glob matches paths against the globs of tools and of ignore files.
//
// The engine is doublestar. What is ours is git's dialect: which classes there
// are, that no class holds a slash, that "a/**" is what lies in a and not a
// itself, and that a brace is a brace where it makes no choice.
package glob

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Glob is a compiled glob over paths with slashes.
type Glob struct {
	// head is the text of the first parts as far as they name one entry each, with
	// the slash behind them. It is the whole path where text is empty.
	head string
	text string // of the other parts
	// heads are the parts of text up to each of its slashes, the first part alone
	// at first, and end behind the first "**".
	heads []string
	deep  bool // there is a "**"
	// last is the glob of the last part where text is "**" and that part; suffix is
	// the text behind its star where it holds nothing else. Most globs are such,
	// and the engine is slow with them.
	last, suffix string
	literals     []string // the parts that name one entry
}

// Compile compiles a glob without braces. ok is false where it can never match:
// a class without an end, an escape of nothing, or nothing between two slashes.
func Compile(text string) (g *Glob, ok bool) {
	parts, ok := translate(bytewise(text))
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
		parts = append(parts, "*") // what lies in it
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

// MayContain reports whether a path below the folder can match.
func (g *Glob) MayContain(folder string) bool {
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

// Names reports whether a part of the glob is that name as it is.
func (g *Glob) Names(name string) bool { return slices.Contains(g.literals, bytewise(name)) }

// translate returns the parts of a glob in doublestar's syntax.
func translate(text string) (parts []string, ok bool) {
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
			part.WriteString(class)
			i += n
		case '\\':
			if i++; i == len(text) {
				return nil, false
			}
			if text[i] == '/' {
				i-- // the slash speaks for itself
				continue
			}
			part.WriteString(text[i-1 : i+1])
		default:
			part.WriteByte(c)
		}
	}
	return append(parts, oneStar(part.String())), true
}

// oneStar makes one star of several that are not a part of their own, and two of
// those that are.
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
			i++ // what it escapes; nothing ends with a backslash
			b.WriteByte(part[i])
			before = 0
		}
	}
	return b.String()
}

// bytewise makes a character of each byte: git's wildcards stand for bytes.
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

// unescape takes off the backslashes.
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
