package builtin

import "strings"

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
