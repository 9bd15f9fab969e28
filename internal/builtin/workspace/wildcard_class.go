package workspace

import "strings"

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
