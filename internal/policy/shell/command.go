package shell

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/text"
)

// The supported grammars. A line in another grammar is Unread, and the first word of
// each of its pieces counts as a command.
const (
	Bash  = "bash"
	POSIX = "sh"
)

// Line is what a shell line does. The zero value does nothing.
type Line struct {
	// Commands are its parts in order; empty if the line has only comments.
	Commands []Command
	// Writes are the names of the files that redirections and options write, as they
	// are spelled in the line, or in the folder to which a cd in it leads.
	Writes []string
}

// Command is one part of a line that rules apply to: a simple command, or
// something else that has an effect.
type Command struct {
	Text string // as written
	// Doubt is the reason why no rule on commands covers the part; "" if a rule can.
	Doubt string
	// Unread is set if the part cannot be parsed reliably, for the reason in Doubt.
	Unread bool
	// Refused is set if the line is too large to be analyzed and must not run, for the
	// reason in Doubt.
	Refused bool
	// Catastrophic is the reason why the part would ruin the machine; "" if it would not.
	Catastrophic string

	words   []word // empty if the part is not a command
	dynamic bool   // the program is not known before the line runs
}

func (c Command) equal(o Command) bool {
	return c.Text == o.Text && c.Doubt == o.Doubt && slices.Equal(c.words, o.words) && c.dynamic == o.dynamic && c.Unread == o.Unread && c.Refused == o.Refused && c.Catastrophic == o.Catastrophic
}

// Root returns the program as it is spelled, or "" if it is not known.
func (c *Command) Root() string {
	if len(c.words) == 0 || c.dynamic {
		return ""
	}
	return c.words[0].text
}

// coverable returns the program of a part that rules and approvals on commands can
// cover, or "" if there is a doubt.
func (c *Command) coverable() string {
	if c.Doubt != "" || c.Unread || len(c.words) == 0 || !c.words[0].known {
		return ""
	}
	return c.words[0].text
}

// Certainty says how certain it is that a command is what a rule names. The zero
// value is No.
type Certainty int

// The levels of certainty, lowest first.
const (
	No Certainty = iota
	Maybe
	Yes
)

// Begins reports whether the part begins with exactly the rule's words.
func (c *Command) Begins(command string) bool {
	program := c.coverable()
	if first, ok := firstWord(command); program == "" || ok && first != program {
		return false
	}
	want, ok := ruleWords(command)
	if !ok || len(want) > len(c.words) {
		return false
	}
	for i, w := range want {
		if !c.words[i].known || !text.MatchName(w, c.words[i].text) {
			return false
		}
	}
	return true
}

// Names reports whether the part is, or may be, the command that a rule names. It
// compares the last path element of the program and ignores case. Options may stand
// between the words.
func (c *Command) Names(command string) Certainty {
	if first, ok := firstWord(command); ok && c.isOther(first) {
		return No
	}
	return c.names(command)
}

func (c *Command) names(command string) Certainty {
	want, ok := ruleWords(command)
	if !ok {
		return Yes // a rule that cannot be read matches everything, so that it fails closed
	}
	unknown := No
	if c.dynamic {
		unknown = Maybe
	}
	if len(c.words) == 0 || !text.MatchName(programName(want[0]), programName(c.words[0].text)) && !c.words[0].globs(want[0]) {
		return unknown
	}
	return max(unknown, restNamed(want[1:], c.words[1:]))
}

// firstWord returns the first word of a rule's command if it is plain. Comparing it
// first avoids parsing most rules of a long list.
func firstWord(command string) (word string, ok bool) {
	for i := range len(command) {
		switch c := command[i]; {
		case c == ' ' && i > 0:
			return command[:i], true
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/':
		default:
			return "", false
		}
	}
	return command, command != ""
}

// isOther reports whether the first letters are enough to tell that a program is not
// the one of the part.
func (c *Command) isOther(program string) bool {
	if c.dynamic || len(c.words) == 0 || c.words[0].glob {
		return false
	}
	a, b := firstLetter(program), firstLetter(c.words[0].text)
	return a != b && a != 0 && b != 0
}

// firstLetter returns the first byte of a program's name in lower case, or 0 if it is
// not ASCII.
func firstLetter(program string) byte {
	name := program
	for i := len(program) - 1; i >= 0; i-- {
		if program[i] == '/' || program[i] == '\\' {
			name = program[i+1:]
			break
		}
	}
	switch {
	case name == "" || name[0] >= 0x80:
		return 0
	case name[0] >= 'A' && name[0] <= 'Z':
		return name[0] + 'a' - 'A'
	}
	return name[0]
}

// restNamed looks for the remaining words of a rule, in order, among the words of a
// command. Options, with or without values, may stand before each of them.
func restNamed(want []string, words []word) Certainty {
	sure := Yes
	for _, w := range want {
		at := -1
		for i := range words {
			certain := words[i].known || words[i].expanded
			if !certain {
				sure = Maybe
			}
			if foldMatch(w, words[i].text) {
				at = i
				break
			}
			optionBefore := i > 0 && strings.HasPrefix(words[i-1].text, "-")
			if certain && !strings.HasPrefix(words[i].text, "-") && !optionBefore && !strings.HasPrefix(w, "-") {
				break
			}
		}
		if at < 0 {
			if sure == Maybe {
				return Maybe
			}
			return No
		}
		if words[at].known || words[at].expanded {
			sure = Yes
		}
		words = words[at+1:]
	}
	return sure
}

// globs reports whether the word is a glob that matches the name of the program.
func (w word) globs(program string) bool {
	if !w.glob {
		return false
	}
	ok, err := doublestar.Match(programName(w.text), programName(program))
	return ok && err == nil
}

// IsPlain reports whether a rule can name the command: it must be one simple command
// that consists of plain words and globs.
func IsPlain(command string) bool {
	_, ok := ruleWords(command)
	return ok
}

// ruleWords splits the command of a rule into words. ok is false if it is anything
// but one simple command that consists of plain words and globs.
func ruleWords(command string) (words []string, ok bool) {
	if strings.Trim(command, ruleWordChars) == "" {
		words = strings.Fields(command)
		return words, len(words) > 0
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 || file.Stmts[0].Background || file.Stmts[0].Negated {
		return nil, false
	}
	call, isCall := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !isCall || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, false
	}
	r := reader{}
	for _, a := range call.Args {
		w := r.word(a)
		if !w.known && !w.glob || mayExpand(a) {
			return nil, false
		}
		words = append(words, w.text)
	}
	return words, true
}

// plainChars are the characters without a special meaning in shells, ruleWordChars
// those without one in the command of a rule.
const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%"

const ruleWordChars = plainChars + " *?"

// foldMatch reports whether a glob matches a word, ignoring case. No glob matches "".
func foldMatch(pattern, word string) bool {
	return word != "" && text.MatchName(strings.ToLower(pattern), strings.ToLower(word))
}
