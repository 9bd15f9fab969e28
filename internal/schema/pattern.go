package schema

import (
	"regexp"
	"strings"
)

// Pattern compiles an ECMAScript regular expression. It returns nil if RE2 has no equivalent.
func Pattern(pattern string) *regexp.Regexp {
	if re, err := regexp.Compile(pattern); err == nil {
		return re
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		if pattern[i+1] == 'u' && i+6 <= len(pattern) && isHex(pattern[i+2:i+6]) {
			b.WriteString(`\x{` + pattern[i+2:i+6] + `}`)
			i += 5
			continue
		}
		b.WriteString(pattern[i : i+2])
		i++
	}
	re, _ := regexp.Compile(b.String())
	return re
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// IsCommonPattern reports whether a pattern uses only features that the regular expressions of
// ECMAScript, Python, RE2 and Rust share. This excludes lookaround, references to groups, names of
// groups and Unicode classes.
func IsCommonPattern(pattern string) bool {
	if Pattern(pattern) == nil {
		return false
	}
	inClass := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		for _, assertion := range []string{"^", "$", `\b`, `\B`} { // Python repeats none
			after, found := strings.CutPrefix(rest, assertion)
			if found && !inClass && after != "" && strings.Contains("*+?{", after[:1]) {
				return false
			}
		}
		switch {
		case rest[0] == '\\':
			if len(rest) < 2 || strings.IndexByte("AzZQECpP123456789", rest[1]) >= 0 || strings.HasPrefix(rest, `\x{`) {
				return false
			}
			if i++; inClass && strings.IndexByte("dDsSwW", rest[1]) >= 0 &&
				len(rest) > 3 && rest[2] == '-' && rest[3] != ']' { // the second part of a range
				return false
			}
		case inClass:
			inClass = rest[0] != ']'
			if rest[0] == '[' {
				return false
			}
		case rest[0] == '[':
			inClass = true
			if body := strings.TrimPrefix(rest[1:], "^"); strings.HasPrefix(body, "]") {
				return false
			}
		case strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"), strings.HasPrefix(rest, "{,"):
			return false
		}
	}
	return true
}
