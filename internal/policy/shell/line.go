package shell

import (
	"slices"
)

// Line describes the effects of a shell line. The zero value has none.
type Line struct {
	// Commands are the parts of the line, in order. It is empty if the line has
	// only comments.
	Commands []Command
	// Writes are the names of files that redirections, options and operands write, as
	// spelled in the line or relative to the folder that a cd in it changes to.
	Writes []string
	// Inside are files that are written if their folder exists, as f in "mv f x".
	Inside []Inside
	// Trees are the files and folders of Writes that are moved or removed with all that is in them.
	Trees []string
}

// Inside is a file in a folder, which is spelled as in Writes.
type Inside struct{ Folder, Name string }

// Command is one part of a line that rules apply to: a simple command, or
// something else that has an effect.
type Command struct {
	Text string // as written
	// Doubt is the reason why no rule on commands can allow the part; "" if a rule
	// can.
	Doubt string
	// Exact is the reason why a rule that allows must have all words of the part: its
	// program or an option is not known to be harmless. It is "" if the first words
	// are enough.
	Exact string
	// Named is the reason why a rule that allows must have the subcommand: it changes something
	// that others use. It is "" if a rule on the program is enough.
	Named string
	// Unread is set if the part cannot be parsed reliably. Doubt has the reason.
	Unread bool
	// Refused is set if the line is too large to be analyzed and must not run.
	// Doubt has the reason.
	Refused bool
	// Unclear is the reason why the part may write files that are not in [Line.Writes]; "" if it
	// writes none, as far as its words say.
	Unclear string
	// Fallbacks are the files that the part writes instead of those in [Line.Writes] if a cd before
	// it fails or does not run.
	Fallbacks []string
	// Unplaced is set if the part writes files in a folder that is not known, because a cd led there.
	Unplaced bool
	// Redirects is set if the part is a redirection to a file, and no command.
	Redirects bool
	// Passes is set if the part has no effect besides that of other parts, so that it needs no
	// rule: it is a wrapper such as timeout whose command is a part of its own, or a variable that
	// no program acts on.
	Passes bool
	// Catastrophic is the reason why the part would ruin the machine; "" if it would not.
	Catastrophic string

	words []word // empty if the part is not a command
	// short is words without an option that names a folder of the project, and without harmless
	// ones before the subcommand.
	short   []word
	lead    int      // number of words that determine what it does, as in git log
	dir     string   // the folder that a cd changed to; "" if there was no cd, or its target is unknown
	moved   bool     // there was a cd
	dynamic bool     // the program is not known before the line runs
	outer   *Command // a runner that runs the part, and that rules that allow name instead; nil if there is none
}

func (c Command) equal(o Command) bool {
	return c.Text == o.Text && c.Doubt == o.Doubt && c.Exact == o.Exact && slices.Equal(c.words, o.words) &&
		c.dynamic == o.dynamic && c.Unread == o.Unread && c.Refused == o.Refused && c.Passes == o.Passes &&
		c.Unclear == o.Unclear && slices.Equal(c.Fallbacks, o.Fallbacks) && c.Unplaced == o.Unplaced &&
		c.Catastrophic == o.Catastrophic
}
