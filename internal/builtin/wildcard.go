package builtin

import (
	"fmt"
	"strings"
)

// wildcard is a compiled pattern over slash-separated paths: * and ? within a
// part, [...] classes, \ escapes, and ** as a part of its own for any number
// of parts. Matching is by bytes and takes at most the product of the lengths
// of pattern and path, whatever the pattern.
type wildcard struct {
	parts []wildPart
}

// wildPart matches one part of a path.
type wildPart struct {
	deep    bool   // **
	literal string // the whole part, when tokens is nil
	tokens  []wildToken
}

// wildToken matches one byte, or with star set any number of bytes.
type wildToken struct {
	star bool
	any  bool      // ?
	set  *[32]byte // a class, as bits
	char byte
}

// compileWildcard compiles the pattern. ok is false where it can never match:
// a class without an end or an escape of nothing.
func compileWildcard(pattern string) (w wildcard, ok bool) {
	var tokens []wildToken
	stars := true // the part holds nothing but stars
	flush := func() {
		w.parts = append(w.parts, newPart(tokens, stars))
		tokens, stars = nil, true
	}
	for i := 0; i < len(pattern); {
		c := pattern[i]
		i++
		switch c {
		case '/':
			flush()
			continue
		case '*':
			tokens = append(tokens, wildToken{star: true})
			continue
		case '?':
			tokens = append(tokens, wildToken{any: true})
		case '[':
			set, n := parseClass(pattern[i:])
			if n == 0 {
				return wildcard{}, false
			}
			i += n
			tokens = append(tokens, wildToken{set: set})
		case '\\':
			if i == len(pattern) {
				return wildcard{}, false
			}
			if c = pattern[i]; c == '/' {
				continue // the slash speaks for itself
			}
			i++
			fallthrough
		default:
			tokens = append(tokens, wildToken{char: c})
		}
		stars = false
	}
	flush()
	return w, true
}

func newPart(tokens []wildToken, stars bool) wildPart {
	if stars && len(tokens) >= 2 {
		return wildPart{deep: true}
	}
	var literal strings.Builder
	for i, t := range tokens {
		if t.star || t.any || t.set != nil {
			return wildPart{tokens: oneStar(tokens, i)}
		}
		literal.WriteByte(t.char)
	}
	return wildPart{literal: literal.String()}
}

// oneStar makes one star of several in a row.
func oneStar(tokens []wildToken, from int) []wildToken {
	out := tokens[:from:from]
	for _, t := range tokens[from:] {
		if t.star && len(out) > 0 && out[len(out)-1].star {
			continue
		}
		out = append(out, t)
	}
	return out
}

// match reports whether the whole path matches.
func (w *wildcard) match(path string) bool {
	return w.matchFrom(path, false)
}

// mayContain reports whether a path below dir can match.
func (w *wildcard) mayContain(dir string) bool {
	return w.matchFrom(dir, true)
}

// matchFrom walks the parts of both; with prefix set it is enough that the
// path ends before the pattern does. Where a part fails, the last ** takes one
// part more; earlier ones need no second try, since the last can take
// whatever they would.
func (w *wildcard) matchFrom(path string, prefix bool) bool {
	at, rest, more := 0, path, true // more: rest is at least one part
	retryAt, retryRest := -1, ""
	for {
		deep := at < len(w.parts) && w.parts[at].deep
		switch {
		case deep && prefix:
			return true
		case deep && at == len(w.parts)-1:
			return more
		case deep:
			at++
			retryAt, retryRest = at, rest
			continue
		case !more:
			return (at == len(w.parts)) != prefix
		case at < len(w.parts):
			part, tail, found := strings.Cut(rest, "/")
			if w.parts[at].match(part) {
				at, rest, more = at+1, tail, found
				continue
			}
		}
		_, tail, found := strings.Cut(retryRest, "/")
		if retryAt < 0 || !found {
			return false
		}
		at, rest, more = retryAt, tail, true
		retryRest = tail
	}
}

func (p *wildPart) match(s string) bool {
	if p.tokens == nil {
		return s == p.literal
	}
	at, i := 0, 0
	starAt, starI := -1, 0
	for i < len(s) || at < len(p.tokens) {
		if at < len(p.tokens) {
			t := &p.tokens[at]
			if t.star {
				if at == len(p.tokens)-1 {
					return true
				}
				starAt, starI = at, i
				at++
				continue
			}
			if i < len(s) && t.matches(s[i]) {
				at++
				i++
				continue
			}
		}
		if starAt < 0 || starI >= len(s) {
			return false
		}
		starI++
		at, i = starAt+1, starI
	}
	return true
}

func (t *wildToken) matches(c byte) bool {
	switch {
	case t.any:
		return true
	case t.set != nil:
		return t.set[c>>3]&(1<<(c&7)) != 0
	}
	return t.char == c
}

// parseClass reads a class behind its "[" and returns it with the number of
// bytes it takes, 0 where it has no end. As in git, ! and ^ negate, ] stands
// for itself at the start, and a slash is in no class.
func parseClass(s string) (*[32]byte, int) {
	set := new([32]byte)
	i, negated := 0, false
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		negated = true
		i++
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return nil, 0
		}
		if s[i] == ']' && !first {
			i++
			break
		}
		if name, ok := className(s[i:]); ok {
			if !addNamed(set, name) {
				return nil, 0
			}
			i += len(name) + 4
			continue
		}
		low, n := classByte(s[i:])
		if i += n; n == 0 {
			return nil, 0
		}
		high := low
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			if high, n = classByte(s[i+1:]); n == 0 {
				return nil, 0
			}
			i += 1 + n
		}
		for c := int(low); c <= int(high); c++ {
			set[c>>3] |= 1 << (c & 7)
		}
	}
	if negated {
		for b := range set {
			set[b] = ^set[b]
		}
	}
	set['/'>>3] &^= 1 << ('/' & 7)
	return set, i
}

func classByte(s string) (byte, int) {
	switch {
	case s == "":
		return 0, 0
	case s[0] != '\\':
		return s[0], 1
	case len(s) < 2:
		return 0, 0
	}
	return s[1], 2
}

// className returns the name in a leading [:name:].
func className(s string) (string, bool) {
	if !strings.HasPrefix(s, "[:") {
		return "", false
	}
	name, _, ok := strings.Cut(s[2:], ":]")
	return name, ok && !strings.Contains(name, "]")
}

func addNamed(set *[32]byte, name string) bool {
	in := classTest(name)
	if in == nil {
		return false
	}
	for c := range 128 {
		if in(byte(c)) {
			set[c>>3] |= 1 << (c & 7)
		}
	}
	return true
}

func classTest(name string) func(byte) bool {
	between := func(low, high byte) func(byte) bool {
		return func(c byte) bool { return low <= c && c <= high }
	}
	upper, lower, digit, graph := between('A', 'Z'), between('a', 'z'), between('0', '9'), between('!', '~')
	alnum := func(c byte) bool { return upper(c) || lower(c) || digit(c) }
	switch name {
	case "alpha":
		return func(c byte) bool { return upper(c) || lower(c) }
	case "alnum":
		return alnum
	case "digit":
		return digit
	case "upper":
		return upper
	case "lower":
		return lower
	case "xdigit":
		return func(c byte) bool { return digit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
	case "space":
		return func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "graph":
		return graph
	case "print":
		return between(' ', '~')
	case "punct":
		return func(c byte) bool { return graph(c) && !alnum(c) }
	case "cntrl":
		return func(c byte) bool { return c < ' ' || c == 127 }
	}
	return nil
}

// maxAlternatives bounds what the braces of one pattern may expand to.
const maxAlternatives = 1024

// expandBraces returns the patterns that a pattern with {a,b} stands for, the
// pattern itself where it holds none. Braces nest; without a comma or an end
// they stand for themselves.
func expandBraces(pattern string) ([]string, error) {
	out := []string{""}
	for pattern != "" {
		open, end, choices := firstBraces(pattern)
		if choices == nil {
			out = join(out, []string{pattern})
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
			return nil, fmt.Errorf("braces stand for more than %d patterns; use fewer", maxAlternatives)
		}
		out = join(join(out, []string{pattern[:open]}), middle)
		pattern = pattern[end:]
	}
	return out, nil
}

func join(heads, tails []string) []string {
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out
}

// firstBraces finds the first complete {a,b}: where it opens, where it ends,
// and its choices, nil if there is none.
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
