package shell

import (
	"slices"
	"strings"
	"testing"
)

// Braces expand as the manual of Bash says. What is no list or range stays as it is.
func TestBraces(t *testing.T) {
	for word, want := range map[string]string{
		"{a,b}": "a b", "x{a,b}y": "xay xby", "{a,b}{1,2}": "a1 a2 b1 b2", "{a,{b,c}d}": "a bd cd", "{{a,b},c}": "a b c",
		"{a,}x": "ax x", "{,}": "", "x{,y}": "x xy", "{a,b}}": "a} b}", "{{a,b}": "{a {b", "{a,b}{c": "a{c b{c", "{a,b,{c}}": "a b {c}",
		"{}": "{}", "{}{a,b}": "{}a {}b", "x{}{a,b}": "x{}a x{}b", "{a}": "{a}", "{a}{b,c}": "{a}b {a}c", "{a,b": "{a,b", "{{}": "{{}", "a,b": "a,b",
		`\{a,b}`: "{a,b}", `{a\,b}`: "{a,b}", `{a\,b,c}`: "a,b c", `{a,b\}`: "{a,b}", `{'a',"b"}`: "a b", `{'a,b',c}`: "a,b c",
		"{1..3}": "1 2 3", "{3..1}": "3 2 1", "{-1..1}": "-1 0 1", "{01..3}": "01 02 03", "{1..03}": "01 02 03", "{-01..1}": "-01 000 001", "{0..2}": "0 1 2",
		"{1..10..4}": "1 5 9", "{10..1..-4}": "10 6 2", "{1..3..0}": "1 2 3", "{2..2}": "2", "{1..3}{a,b}": "1a 1b 2a 2b 3a 3b",
		"{a..c}": "a b c", "{c..a}": "c b a", "{a..e..2}": "a c e", "{A..C}": "A B C", "{X..Z}": "X Y Z",
		"{1..}": "{1..}", "{..1}": "{..1}", "{1.2}": "{1.2}", "{a..1}": "{a..1}", "{1..a}": "{1..a}", "{_..a}": "{_..a}", "{ab..c}": "{ab..c}",
		"{1..2..x}": "{1..2..x}", "{1..2..3..4}": "{1..2..3..4}", "{1..2": "{1..2", "{1..2}x": "1x 2x", "{a..b,c}": "a..b c", "{a,b..c}": "a b..c",
		"{1..2}{": "1{ 2{", "{1...3}": "{1...3}", `{1..3"x"}`: "{1..3x}", `{"1"..3}`: "{1..3}", "{9..A}": "{9..A}", "{A..9}": "{A..9}", "{{1..2}}": "{1} {2}", "{{1..2},x}": "1 2 x",
	} {
		commands := Read(Bash, "echo "+word, "").Commands
		var got []string
		for _, w := range commands[0].words[1:] {
			got = append(got, w.text)
		}
		if len(commands) != 1 || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q (%+v)", word, got, want, commands)
		}
	}
}

// Words that are not certain, or too many, are unread.
func TestBracesWhoseWordsAreUnknown(t *testing.T) {
	for known, unknown := range map[string]string{
		"${x}{a,b} $0{a,b} $9{a,b}":   "$x{a,b}",
		"$x{-,.}":                     "$_{a,b}",
		"$@{a,b}":                     "$xa{0,b}",
		`{a,\$}b`:                     "{a,$}b",
		"{a..z}":                      "{a..Z}",
		"{A..Z}":                      "{A..z}",
		"{1..10000}":                  "{1..10001}",
		"{1..5000} {1..5000}":         "{1..5000} {1..5001}",
		"{1..2147483647..2147483647}": "{1..2147483648..2147483647}",
		"{2147483647..1..2147483647}": "{2147483648..1..2147483647}",
		"{1..3..2147483647}":          "{1..3..2147483648}",
		"{1..100}{1..99}":             "{1..100}{1..100}",
		strings.Repeat("{1..1}", 17):  strings.Repeat("{1..1}", 18),
		strings.Repeat("{a,", 17) + "b" + strings.Repeat("}", 17): strings.Repeat("{a,", 18) + "b" + strings.Repeat("}", 18),
		strings.Repeat("{", 99) + "{a,b}":                         strings.Repeat("{", 100) + "{a,b}",
		strings.Repeat("x", 1<<16) + "{a,b,c}":                    strings.Repeat("x", 1<<16) + "{a,b,c,d}",
	} {
		for word, want := range map[string]bool{known: false, unknown: true} {
			if got := slices.ContainsFunc(Read(Bash, "echo "+word, "").Commands, func(c Command) bool { return c.Unread }); got != want {
				t.Errorf("%.40s: unread %t, want %t", word, got, want)
			}
		}
	}
}

// A word of braces that begins with a known letter is no option.
func TestBracesAfterALetter(t *testing.T) {
	for line, want := range map[string]bool{`git log "a$x"{b,c}`: true, `git log "$x"{b,c}`: false} {
		if c := Read(Bash, line, "").Commands[0]; (c.Exact == "") != want {
			t.Errorf("%s: exact %q", line, c.Exact)
		}
	}
}
