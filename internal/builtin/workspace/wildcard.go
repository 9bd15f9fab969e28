package workspace

import "strings"

// Wildcard is a compiled pattern over slash-separated paths: * and ? within a
// part, [...] classes, \ escapes, and ** as a part of its own for any number
// of parts. Matching is by bytes and takes at most the product of the lengths
// of pattern and path, whatever the pattern.
type Wildcard struct {
	Parts []WildPart
}

// WildPart matches one part of a path.
type WildPart struct {
	Deep    bool   // **
	Literal string // the whole part, when tokens is nil
	Tokens  []wildToken
}

// wildToken matches one byte, or with star set any number of bytes.
type wildToken struct {
	star bool
	any  bool      // ?
	set  *[32]byte // a class, as bits
	char byte
}

// CompileWildcard compiles the pattern. ok is false where it can never match:
// a class without an end or an escape of nothing.
func CompileWildcard(pattern string) (w Wildcard, ok bool) {
	var tokens []wildToken
	stars := true // the part holds nothing but stars
	flush := func() {
		w.Parts = append(w.Parts, newPart(tokens, stars))
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
				return Wildcard{}, false
			}
			i += n
			tokens = append(tokens, wildToken{set: set})
		case '\\':
			if i == len(pattern) {
				return Wildcard{}, false
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

func newPart(tokens []wildToken, stars bool) WildPart {
	if stars && len(tokens) >= 2 {
		return WildPart{Deep: true}
	}
	var literal strings.Builder
	for i, t := range tokens {
		if t.star || t.any || t.set != nil {
			return WildPart{Tokens: oneStar(tokens, i)}
		}
		literal.WriteByte(t.char)
	}
	return WildPart{Literal: literal.String()}
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

// Match reports whether the whole path matches.
func (w *Wildcard) Match(path string) bool {
	return w.matchFrom(path, false)
}

// MayContain reports whether a path below dir can match.
func (w *Wildcard) MayContain(dir string) bool {
	return w.matchFrom(dir, true)
}

// matchFrom walks the parts of both; with prefix set it is enough that the
// path ends before the pattern does. Where a part fails, the last ** takes one
// part more; earlier ones need no second try, since the last can take
// whatever they would.
func (w *Wildcard) matchFrom(path string, prefix bool) bool {
	at, rest, more := 0, path, true // more: rest is at least one part
	retryAt, retryRest := -1, ""
	for {
		deep := at < len(w.Parts) && w.Parts[at].Deep
		switch {
		case deep && prefix:
			return true
		case deep && at == len(w.Parts)-1:
			return more
		case deep:
			at++
			retryAt, retryRest = at, rest
			continue
		case !more:
			return (at == len(w.Parts)) != prefix
		case at < len(w.Parts):
			part, tail, found := strings.Cut(rest, "/")
			if w.Parts[at].match(part) {
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

func (p *WildPart) match(s string) bool {
	if p.Tokens == nil {
		return s == p.Literal
	}
	at, i := 0, 0
	starAt, starI := -1, 0
	for i < len(s) || at < len(p.Tokens) {
		if at < len(p.Tokens) {
			t := &p.Tokens[at]
			if t.star {
				if at == len(p.Tokens)-1 {
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
