package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxCover is the maximum length in bytes of the text that Cover returns, because
// a person has to read it.
const maxCover = 120

// Cover returns the words that an "always" answer for this command covers: every
// command that begins with them is then allowed. They are the program and its
// subcommand, or the whole command if its arguments are not known to be harmless.
// Cover returns "" if "always" cannot be offered, because the subcommand is missing
// or the words are too long to read at a glance.
func (c *Command) Cover() string {
	if c.outer != nil {
		return c.outer.Cover()
	}
	if root := c.coverable(); root == "" || isShell(programName(root)) || c.lead > len(c.short) {
		return ""
	}
	cover := make([]string, c.lead)
	for i, w := range c.short[:c.lead] {
		quoted, err := syntax.Quote(w.text, syntax.LangBash)
		if !w.known || err != nil {
			return ""
		}
		cover[i] = quoted
	}
	if out := strings.Join(cover, " "); len(out) <= maxCover {
		return out
	}
	return ""
}

// Covered reports whether an "always" answer for these words covers the command. If
// confined is set, the answer was to run it confined.
func (c *Command) Covered(cover string, confined bool) bool {
	if c.outer != nil {
		return c.outer.Covered(cover, confined)
	}
	want, ok := ruleWords(cover)
	if !ok || c.coverable() == "" || len(want) < c.lead && !(confined && c.Exact != "") {
		return false
	}
	covers := func(words []word) bool {
		return len(want) <= len(words) &&
			!slices.ContainsFunc(words[:len(want)], func(w word) bool { return !w.known }) &&
			slices.EqualFunc(want, words[:len(want)], func(text string, w word) bool { return w.text == text })
	}
	return covers(c.short) || len(want) == len(c.words) && covers(c.words)
}

// CoverKind says which commands an "always" answer for some words covers.
type CoverKind int

// The kinds of covers.
const (
	CoversNothing CoverKind = iota // the subcommand is missing
	CoversExactly                  // the command of these words alone
	CoversPrefix                   // all commands that begin with them
)

// KindOfCover returns which commands an "always" answer for these words covers.
// Words without the subcommand cover nothing, because they may allow more than the
// person was shown.
func KindOfCover(cover string) CoverKind {
	commands := Read(Bash, cover, "").Commands
	switch {
	case len(commands) == 0 || slices.ContainsFunc(commands[1:], func(c Command) bool { return c.outer == nil }) ||
		commands[0].lead > len(commands[0].words) || commands[0].coverable() == "":
		return CoversNothing
	case commands[0].Exact != "":
		return CoversExactly
	}
	return CoversPrefix
}
