package local

import (
	"strings"

	"github.com/toolreg/toolreg/internal/lazy"
)

// lookaround matches what xgrammar's patterns do not support: lookaround, word boundaries,
// backreferences and Unicode classes.
var lookaround = lazy.NewRegexp(`\(\?[^:]|\\[bB1-9pPk]`)

// plainPattern converts a pattern for llama.cpp, and reports whether that is possible. Its grammars
// have literals, brackets, groups, alternatives in groups and repetitions, but no classes such as
// \d. Patterns are matched against JSON text, so one that allows a quote, a backslash or a control
// character (., [^a], \s) would allow broken JSON. A pattern without ^ and $ is rejected.
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
		c, text, size, whole := body[0], body[:1], 1, true // what is written for how much of body; whole: * can follow
		switch {
		case c == '(':
			rest := strings.TrimPrefix(body[1:], "?:")
			if rest == "" || strings.ContainsRune("?)|*+{", rune(rest[0])) {
				return "", false
			}
			depth++
			size, whole = len(body)-len(rest), false
		case c == ')':
			if depth--; depth < 0 || !repeatable {
				return "", false
			}
		case c == '|':
			if depth == 0 || !repeatable {
				return "", false
			}
			whole = false
		case strings.ContainsRune("*+?{", rune(c)):
			if c == '{' {
				text = repetition.Get().FindString(body)
			}
			if size = len(text); !repeatable || size == 0 ||
				size < len(body) && strings.ContainsRune("*+?{", rune(body[size])) {
				return "", false
			}
		case c == '[':
			end := strings.IndexByte(body, ']')
			if end < 2 {
				return "", false
			}
			bracket := classes.Replace(body[1:end])
			if !plainBracket.Get().MatchString(bracket) {
				return "", false
			}
			text, size = "["+bracket+"]", end+1
		case c == '\\':
			if len(body) < 2 {
				return "", false
			}
			text, size = body[:2], 2
			switch class := classes.Replace(text); {
			case class != text:
				text = "[" + class + "]"
			case strings.IndexByte(`^$.[]()|{}*+?`, body[1]) >= 0:
			case strings.IndexByte(`-/_:@#=,`, body[1]) >= 0: // no escape is needed
				text = body[1:2]
			default:
				return "", false
			}
		case !plainLiteral(c):
			return "", false
		}
		out.WriteString(text)
		body, repeatable = body[size:], whole
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
