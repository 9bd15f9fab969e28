package glob

import (
	"strings"
	"unicode/utf8"
)

// translateClass parses a class after its "[". It returns the class in
// doublestar's syntax and the number of bytes parsed, which is 0 if the class
// is not closed. As in git, ! and ^ negate, ] is literal at the start,
// [:names:] match ASCII characters, and no class contains a slash.
func translateClass(s string) (class string, n int) {
	var b strings.Builder
	b.WriteByte('[')
	i, negated := 0, false
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		negated = true
		b.WriteString("^/")
		i++
	}
	empty := !negated
	for first := true; ; first = false {
		if i >= len(s) {
			return "", 0
		}
		if s[i] == ']' && !first {
			break
		}
		if name, ok := className(s[i:]); ok {
			set := classSet(name)
			if set == "" {
				return "", 0
			}
			b.WriteString(set)
			i, empty = i+len(name)+4, false
			continue
		}
		low, size := classRune(s[i:])
		if i += size; size == 0 {
			return "", 0
		}
		high := low
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			if high, size = classRune(s[i+1:]); size == 0 {
				return "", 0
			}
			i += 1 + size
			high = max(low, high) // as in git, the range b-a matches only b
		}
		if low <= '/' && '/' <= high {
			empty = !writeRange(&b, low, '/'-1) && empty
			low = '/' + 1
		}
		empty = !writeRange(&b, low, high) && empty
	}
	if empty {
		b.WriteByte(0) // no path contains NUL
	}
	b.WriteByte(']')
	return b.String(), i + 1
}

// writeRange writes a range of characters and reports whether it is not empty.
func writeRange(b *strings.Builder, low, high rune) bool {
	if low > high {
		return false
	}
	b.WriteByte('\\')
	b.WriteRune(low)
	if low < high {
		b.WriteString(`-\`)
		b.WriteRune(high)
	}
	return true
}

// classRune returns the character at the start of s, which may be escaped, and
// its number of bytes, which is 0 if there is no character.
func classRune(s string) (r rune, size int) {
	escaped := 0
	if strings.HasPrefix(s, `\`) {
		escaped = 1
	}
	r, size = utf8.DecodeRuneInString(s[escaped:])
	if size == 0 {
		return 0, 0
	}
	return r, escaped + size
}

// className returns the name in a leading [:name:].
func className(s string) (string, bool) {
	if !strings.HasPrefix(s, "[:") {
		return "", false
	}
	name, _, ok := strings.Cut(s[2:], ":]")
	return name, ok && !strings.Contains(name, "]")
}

// classSet returns the characters of a named class, without the slash.
func classSet(name string) string {
	switch name {
	case "alpha":
		return "A-Za-z"
	case "alnum":
		return "A-Za-z0-9"
	case "digit":
		return "0-9"
	case "upper":
		return "A-Z"
	case "lower":
		return "a-z"
	case "xdigit":
		return "0-9A-Fa-f"
	case "space":
		return " \t-\r"
	case "blank":
		return " \t"
	case "graph":
		return `!-.0-\~`
	case "print":
		return ` -.0-\~`
	case "punct":
		return "!-.:-@\\[-`{-\\~"
	case "cntrl":
		return "\x00-\x1f\x7f"
	}
	return ""
}
