package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/text"
)

// lineExpr is a regular expression that is matched within lines, with texts of
// which every matching line contains at least one. Searching for these first is
// many times faster than running the expression.
type lineExpr struct {
	regexp *regexp.Regexp
	prog   *syntax.Prog
	needs  []need // nil means every line is tried
}

// need is a text that a match may have to contain.
type need struct {
	text   []byte // lower case if fold
	fold   bool   // ASCII letters match in either case
	anchor int    // the byte of text to search for first
}

// minWorth is the worth below which searching for texts first saves nothing.
const minWorth = 30

// maxNeeds limits the number of texts searched for at the same time.
const maxNeeds = 8

func compileLineExpr(pattern string, fold bool) (*lineExpr, error) {
	flags := syntax.Perl
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, explainSyntax(pattern, err)
	}
	if wantsNewline(tree) {
		return nil, errors.New("contains a line break, but a match is within one line: search for the most telling of the lines, with context to see the others")
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	e := &lineExpr{regexp: re, prog: prog}
	texts := required(tree)
	if score(texts) < minWorth {
		return e, nil
	}
	for _, text := range texts {
		e.needs = append(e.needs, newNeed(text))
	}
	return e, nil
}

// explainSyntax returns why a pattern is refused, and what to do instead.
func explainSyntax(pattern string, err error) error {
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return err
	}
	quoted := "`" + strings.ReplaceAll(text.Escape(bad.Expr), `\\`, `\`) + "`"
	if what, instead := unsupportedSyntax(bad); what != "" {
		return fmt.Errorf("has %s, %s, which RE2 syntax does not have; %s", what, quoted, instead)
	}
	return fmt.Errorf("is not a regular expression in RE2 syntax: %s in %s; write %s to search for the text as it is",
		bad.Code, quoted, regexp.QuoteMeta(pattern))
}

// unsupportedSyntax names the part of other syntaxes that an error is about, and what to write
// instead. what is "" if the pattern is wrong in any syntax.
func unsupportedSyntax(bad *syntax.Error) (what, instead string) {
	// The parser reports the text from the mistake on, or only its first characters.
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(bad.Expr, p) })
	}
	switch bad.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture:
		switch {
		case has("(?=", "(?!"):
			return "a lookahead", "search without it, and pick the lines from the result"
		case has("(?<=", "(?<!"):
			return "a lookbehind", "search without it, and pick the lines from the result"
		case has("(?>"):
			return "an atomic group", "write (?:, since RE2 never backtracks"
		case has("(?#"):
			return "a comment", "leave it out"
		case bad.Expr == "(?P", has("(?&", "(?R", "(?1"):
			return "a reference to a group", "write out what it is to match"
		case has("(?x"):
			return "a flag for free spacing", "leave out the blanks and comments"
		case has("(?("):
			return "a condition", "write out both cases with |"
		}
	case syntax.ErrInvalidEscape:
		switch {
		case len(bad.Expr) > 1 && '1' <= bad.Expr[1] && bad.Expr[1] <= '9', has(`\k`, `\g`):
			return "a backreference", "search for the part before it, and pick the lines from the result"
		case has(`\u`):
			return "an escape", `write \x{20AC} for a character by its number`
		case has(`\Z`):
			return "an end of the text", `write $`
		case has(`\h`):
			return "a class of blanks", `write [ \t]`
		case has(`\N`):
			return "a character by its name", `write \x{20AC} for a character by its number`
		case has(`\K`):
			return "a reset of the match", "leave it out, since whole lines are shown"
		case has(`\R`):
			return "a line break", "a match is within one line"
		}
	case syntax.ErrInvalidRepeatOp:
		if strings.HasSuffix(bad.Expr, "+") {
			return "a possessive repetition", `leave out its +, or write \+ for the character`
		}
	case syntax.ErrInvalidRepeatSize:
		return "a repetition of more than 1000 times", "write a smaller number, or none, such as {3,}"
	}
	return "", ""
}

// literalEscapes says, as sentences with a leading space, which escapes of a pattern are operators
// in grep's syntax and plain characters in that of RE2, where they are no mistake.
func literalEscapes(pattern string) (note string) {
	plain := strings.ReplaceAll(pattern, `\\`, "")
	if strings.Contains(plain, `\|`) {
		note = ` \| is the character | in RE2 syntax; alternatives are written a|b.`
	}
	if strings.Contains(plain, `\<`) || strings.Contains(plain, `\>`) {
		note += ` \< and \> are the characters < and > in RE2 syntax; a word boundary is written \b.`
	}
	return note
}

func wantsNewline(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral && strings.ContainsRune(string(re.Rune), '\n') {
		return true
	}
	return slices.ContainsFunc(re.Sub, wantsNewline)
}

// requirement is a text that must occur; fold means in either case.
type requirement struct {
	text string
	fold bool
}

// required returns texts of which every match contains at least one, or nil if
// there are no such texts.
func required(re *syntax.Regexp) []requirement {
	switch re.Op {
	case syntax.OpLiteral:
		return requiredLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []requirement
		for _, sub := range re.Sub {
			if r := required(sub); score(r) > score(best) {
				best = r
			}
		}
		return best
	case syntax.OpAlternate:
		var all []requirement
		for _, sub := range re.Sub {
			r := required(sub)
			if r == nil {
				return nil
			}
			all = append(all, r...)
		}
		if len(all) <= maxNeeds {
			return all
		}
	}
	return nil
}

// requiredLiteral returns the longest run that can be searched for by bytes. If
// case is ignored, k, s and letters beyond ASCII end a run, because they have
// other forms of different lengths.
func requiredLiteral(re *syntax.Regexp) []requirement {
	fold := re.Flags&syntax.FoldCase != 0
	text := string(re.Rune)
	if !fold {
		if strings.ContainsRune(text, utf8.RuneError) {
			return nil // U+FFFD also matches invalid bytes
		}
		return []requirement{{text: text}}
	}
	runs := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r >= utf8.RuneSelf || r == 'k' || r == 's'
	})
	best := ""
	for _, run := range runs {
		if scoreText(run) > scoreText(best) {
			best = run
		}
	}
	if best == "" {
		return nil
	}
	return []requirement{{text: best, fold: true}}
}

// score rates texts to search for: longer and rarer texts are better, and each
// additional text has a cost.
func score(all []requirement) int {
	least := 0
	for i, r := range all {
		if w := scoreText(r.text); i == 0 || w < least {
			least = w
		}
	}
	return least * 8 / max(1, len(all)+7)
}

func scoreText(text string) int {
	if text == "" {
		return 0
	}
	best := 0
	for i := range len(text) {
		best = max(best, rarity(text[i]))
	}
	return best + 8*min(len(text), 8)
}

// rarity rates how rare a byte is in source code and prose.
func rarity(c byte) int {
	const common = " etaoinrslcdupmfhg.()_,-:\"'/=;bywv"
	if i := strings.IndexByte(common, lower(c)); i >= 0 {
		return i
	}
	return len(common) + 8
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func newNeed(r requirement) need {
	n := need{text: []byte(r.text), fold: r.fold}
	for i := range n.text {
		if rarity(n.text[i]) > rarity(n.text[n.anchor]) {
			n.anchor = i
		}
	}
	return n
}
