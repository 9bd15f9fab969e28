package shell

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/text"
)

// Root returns the program as spelled in the line, or "" if it is not known.
func (c *Command) Root() string {
	if len(c.words) == 0 || c.dynamic {
		return ""
	}
	return c.words[0].text
}

// Folder returns the folder that a cd before the part or an option changed to, "" if it is not known.
// moved is set if there was one.
func (c *Command) Folder() (dir string, moved bool) { return c.dir, c.moved }

// RunsFolder reports whether what the part runs depends on the folder in which it starts.
func (c *Command) RunsFolder() bool {
	if c.Root() == "" {
		return c.dynamic
	}
	t := tableOf(programName(c.words[0].text))
	return t == nil || !t.isNamed(c.words[0].text) || t.has("folder") ||
		t.has("lead") || t.has("stdin") || t.has("runs") || t.has("local")
}

// Starts returns the program of the part as spelled and the arguments that may name code that it
// runs. A program whose arguments are known to be data has no such arguments.
func (c *Command) Starts() []string {
	if c.Root() == "" {
		return nil
	}
	words := c.short
	if t := tableOf(programName(words[0].text)); t != nil && !t.has("lead") &&
		!t.has("stdin") && t.readArgs(words[1:], false).runner == nil {
		return []string{words[0].text}
	}
	argv := make([]string, len(words))
	for i, w := range words {
		argv[i] = w.text
	}
	return argv
}

// coverable returns the program of a part that rules and approvals on commands can
// allow, or "" if they cannot.
func (c *Command) coverable() string {
	if c.Doubt != "" || c.Unread || len(c.words) == 0 || !c.words[0].known {
		return ""
	}
	return c.words[0].text
}

// Certainty says whether a command is certainly, possibly or certainly not the
// command of a rule. The zero value is No.
type Certainty int

// The levels of certainty, in increasing order.
const (
	No Certainty = iota
	Maybe
	Yes
)

// Begins reports whether the part begins with exactly the words of a rule's
// command. If Exact is set, the rule must have all words of the part, unless the
// part is to run confined.
func (c *Command) Begins(command string, confined bool) bool {
	if c.outer != nil {
		return c.outer.Begins(command, confined)
	}
	program := c.coverable()
	if first, ok := firstWord(command); program == "" || ok && first != program {
		return false
	}
	want, ok := ruleWords(command)
	return ok && (c.begins(c.words, want, confined) || c.begins(c.short, want, confined))
}

func (c *Command) begins(words []word, want []string, confined bool) bool {
	whole := c.Exact != "" && !confined
	named := 0 // the number of words that a rule must name
	if c.Named != "" && !confined {
		named = c.lead + len(words) - len(c.short)
	}
	if len(want) > len(words) || whole && len(want) != len(words) || len(want) < named {
		return false
	}
	for i, w := range want {
		// A glob that begins with a folder does not lead out of it.
		leaves := strings.Contains(w, "/") && slices.Contains(strings.Split(words[i].text, "/"), "..")
		if !words[i].known || !text.MatchName(w, words[i].text) || w != words[i].text && (whole || i < named || leaves) {
			return false
		}
	}
	return true
}

// Names reports whether the part is, or may be, the command of a rule. It compares
// only the last path element of the program, ignores case, and skips options
// between the words.
func (c *Command) Names(command string) Certainty {
	if first, ok := firstWord(command); ok && c.isOther(first) {
		return No
	}
	return c.names(command)
}

func (c *Command) names(command string) Certainty {
	want, ok := ruleWords(Beginning(command))
	if !ok {
		return Yes // fail closed: a malformed rule matches everything
	}
	unknown := No
	if c.dynamic {
		unknown = Maybe
	}
	program := strings.TrimSuffix(want[0], anyRest)
	is := func(name string) bool { return text.MatchName(programName(program), name) }
	if len(c.words) == 0 ||
		!is(programName(c.words[0].text)) && !is(plainName(c.words[0].text)) && !c.words[0].globs(program) {
		return unknown
	}
	t := tableOf(programName(c.words[0].text))
	rest := restNamed(t.named(want[1:]), c.words[1:])
	if rest == No && t != nil && t.has("aliases") && t.mayBeAlias(c.words[1:]) {
		rest = Maybe
	}
	return max(unknown, rest)
}

// Beginning returns the command of a rule that denies or asks without a "*" at its end, because
// nothing needs to follow.
func Beginning(command string) string {
	for {
		command = strings.TrimRight(command, " ")
		rest := strings.TrimRight(command, "*")
		if rest == command || !strings.HasSuffix(rest, " ") || strings.HasSuffix(rest, `\ `) {
			return command
		}
		if strings.Trim(rest, " *") == "" {
			return "*"
		}
		command = rest
	}
}

// firstWord returns the first word of a rule's command if the word is plain.
// Comparing it first avoids parsing most rules of a long list.
func firstWord(command string) (word string, ok bool) {
	for i := range len(command) {
		switch c := command[i]; {
		case c == ' ' && i > 0:
			return command[:i], true
		case isNameByte(c), c == '-', c == '.', c == '/':
		default:
			return "", false
		}
	}
	return command, command != ""
}

// isOther reports whether the first letters of a program rule out that it is the program of the
// part.
func (c *Command) isOther(program string) bool {
	if c.dynamic || len(c.words) == 0 || c.words[0].glob {
		return false
	}
	a, b := firstLetter(program), firstLetter(c.words[0].text)
	return a != b && a != 0 && b != 0 && b != 'g'
}

// firstLetter returns the first byte of a program's name in lower case, or 0 if it
// is not ASCII.
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

// anyRest is how other programs' rules end: "git push:*" matches commands that begin with "git
// push".
const anyRest = ":*"

// named is a word of a rule that denies or asks, behind the program.
type named struct {
	table  *table // of the program and the subcommands before it
	text   string
	option string // see [table.optionName]; "" if the word is not an option
}

// named returns the words of a rule, with a word for each option and for its value.
func (t *table) named(words []string) (out []named) {
	for _, w := range words {
		sub := w
		if option := strings.TrimSuffix(w, anyRest); len(option) > 1 && option[0] == '-' && option != "--" {
			names, value := t.optionsIn(option)
			sub = "-" + names[len(names)-1]
			if t == nil {
				names = names[len(names)-1:]
			}
			for _, name := range names {
				out = append(out, named{t, option, name})
			}
			w = value
		}
		if w != "" {
			out = append(out, named{table: t, text: w})
		}
		if t != nil && hasKey(t.subs, sub) {
			t = tables.Get().table[t.subs[sub]]()
		}
	}
	return out
}

// isWord reports whether a word of a command is the one that a rule names. Case counts if the program has an
// option for either case.
func (n named) isWord(word string) bool {
	if n.option != "" && (word == "" || word[0] != '-' ||
		n.table != nil && hasKey(n.table.names, n.text) && hasKey(n.table.names, word)) {
		return false
	}
	return word != "" && (text.MatchNameFold(n.text, word) ||
		text.MatchNameFold(strings.TrimSuffix(n.text, anyRest), word)) || n.table.isNameOf(word, n.text)
}

// restNamed looks for the remaining words of a rule, in order, among the words of a command. Each
// may be preceded by options, with or without values. The options of a rule may be anywhere.
func restNamed(want []named, words []word) Certainty {
	found, unsure, sub := Yes, false, 0
	from := make([]bool, len(words)+1)     // where the words of the rule so far end
	attached := make([]bool, len(words)+1) // where they end with the next, a value in the word of its option
	from[0] = true
	for k, w := range want {
		if k > 0 && w.table != want[k-1].table {
			sub = slices.Index(from, true)
		}
		to, open := attached, false
		found, attached = No, make([]bool, len(words)+1)
		if slices.Contains(to, true) {
			found = Yes
		}
		for i, a := range words {
			open = open || from[i]
			certain := a.known || a.expanded
			unsure = unsure || open && !certain && !(w.option != "" && a.plainStart)
			t := w.table
			if i < sub { // an option of the program
				t = want[0].table
			}
			names, value := t.optionsIn(a.text)
			if w.option != "" && slices.Contains(names, w.option) || open && w.isWord(a.text) {
				to[i+1], found = true, max(found, Maybe)
				if certain {
					found = Yes
				}
				attached[i+1] = k+1 < len(want) && want[k+1].option == "" &&
					want[k+1].isWord(strings.TrimPrefix(value, "="))
			}
			to[i] = to[i] || w.option != "" && from[i]
			// A word may begin with + as in cargo +nightly.
			option := strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "+")
			optionBefore := i > 0 && strings.HasPrefix(words[i-1].text, "-")
			open = open && (!certain || option || optionBefore || strings.HasPrefix(w.text, "-"))
		}
		switch {
		case found == No && unsure:
			return Maybe
		case found == No:
			return No
		}
		from, unsure = to, unsure && found != Yes
	}
	return found
}

// globs reports whether the word is a glob that matches the name of the program.
func (w word) globs(program string) bool {
	if !w.glob {
		return false
	}
	ok, err := doublestar.Match(programName(w.text), programName(program))
	return ok && err == nil
}

// IsPlain reports whether a command can be used in a rule: it must be a simple
// command of plain words and globs.
func IsPlain(command string) bool {
	_, ok := ruleWords(command)
	return ok
}

// ruleWords splits the command of a rule into words. ok is false unless it is a
// simple command of plain words and globs.
func ruleWords(command string) (words []string, ok bool) {
	if strings.Trim(command, ruleWordChars) == "" {
		words = strings.Fields(command)
		return words, len(words) > 0
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Stmts[0].Redirs) > 0 ||
		file.Stmts[0].Background || file.Stmts[0].Negated {
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

// ruleWordChars are the characters that the command of a rule may have without quotes.
const ruleWordChars = plainChars + " *?"

// Cover returns the words that an "always" answer for this command covers: every
// command that begins with them is then allowed. They are the program and its
// subcommand, or the whole command if its arguments are not known to be harmless.
// Cover returns "" if "always" cannot be offered, because the subcommand is missing
// or the words are too long to read at a glance.
func (c *Command) Cover() string {
	if c.outer != nil {
		return c.outer.Cover()
	}
	if c.coverable() == "" || c.lead > len(c.short) {
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
