package local

import (
	"strings"

	"github.com/toolreg/toolreg/internal/lazy"
)

// lookaround finds what xgrammar's patterns do not have: lookaround, word boundaries,
// backreferences and Unicode classes.
var lookaround = lazy.NewRegexp(`\(\?[^:]|\\[bB1-9pPk]`)

// plainPattern returns a pattern as llama.cpp can take it, and whether it can at all. Its grammars
// have literals, brackets, groups, alternatives in groups and repetitions, but no classes such as
// \d. A pattern is matched against JSON text, so one that admits a quote, a backslash or a control
// character (., [^a], \s) would admit broken JSON. Without ^ and $ a pattern is refused.
func plainPattern(pattern string) (string, bool) {
	body, begins := strings.CutPrefix(pattern, "^")
	body, ends := strings.CutSuffix(body, "$")
	if !begins || !ends || body == "" {
		return "", false
	}
	classes := strings.NewReplacer(`\d`, `0-9`, `\w`, `A-Za-z0-9_`) // as members of a bracket
	var out strings.Builder
	depth, repeatable := 0, false // repeatable: something stands before that * can follow
	for body != "" {
		c := body[0]
		switch {
		case c == '(':
			rest := strings.TrimPrefix(body[1:], "?:")
			if rest == "" || strings.ContainsRune("?)|*+{", rune(rest[0])) {
				return "", false
			}
			out.WriteByte('(')
			body, repeatable = rest, false
			depth++
			continue
		case c == ')':
			if depth--; depth < 0 || !repeatable {
				return "", false
			}
		case c == '|':
			if depth == 0 || !repeatable {
				return "", false
			}
			out.WriteByte(c)
			body, repeatable = body[1:], false
			continue
		case strings.ContainsRune("*+?", rune(c)):
			if !repeatable {
				return "", false
			}
			out.WriteByte(c)
			body, repeatable = body[1:], false
			if body != "" && strings.ContainsRune("*+?{", rune(body[0])) {
				return "", false
			}
			if body == "" || body[0] == ')' || body[0] == '|' {
				repeatable = true // the group is not empty
			}
			continue
		case c == '{':
			bounds := repetition.Get().FindString(body)
			if !repeatable || bounds == "" {
				return "", false
			}
			out.WriteString(bounds)
			body = body[len(bounds):]
			if body != "" && strings.ContainsRune("*+?{", rune(body[0])) {
				return "", false
			}
			continue
		case c == '[':
			end := strings.IndexByte(body, ']')
			if end < 2 {
				return "", false
			}
			bracket := classes.Replace(body[1:end])
			if !plainBracket.Get().MatchString(bracket) {
				return "", false
			}
			out.WriteString("[" + bracket + "]")
			body, repeatable = body[end+1:], true
			continue
		case c == '\\':
			if len(body) < 2 {
				return "", false
			}
			switch class := classes.Replace(body[:2]); {
			case class != body[:2]:
				out.WriteString("[" + class + "]")
			case strings.IndexByte(`^$.[]()|{}*+?`, body[1]) >= 0:
				out.WriteString(body[:2])
			case strings.IndexByte(`-/_:@#=,`, body[1]) >= 0: // no escape is needed
				out.WriteByte(body[1])
			default:
				return "", false
			}
			body, repeatable = body[2:], true
			continue
		case !plainLiteral(c):
			return "", false
		}
		out.WriteByte(c)
		body, repeatable = body[1:], true
	}
	if depth != 0 {
		return "", false
	}
	return "^" + out.String() + "$", true
}

// repetition finds bounds of up to 99 at the beginning.
var repetition = lazy.NewRegexp(`^\{[0-9]{1,2}(,[0-9]{0,2})?\}`)

// plainBracket matches the inside of a bracket that means the same in JSON text.
var plainBracket = lazy.NewRegexp(`^-?([A-Za-z0-9](-[A-Za-z0-9])?|[ _.:/@#%&+,;=~!$'()*?|{}<>])+-?$`)

// plainLiteral reports whether a character stands for itself, in patterns, grammars and JSON.
func plainLiteral(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' ||
		c >= 'a' && c <= 'z' || strings.IndexByte(" _-:/@#%&,;=~!'<>", c) >= 0
}
