package shell

import (
	"fmt"
	"path"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/text"
)

// analysis collects the parts of one command line.
type analysis struct {
	reader
	src   string
	shell string
	depth int
	outer *Command // the runner whose command is analyzed; nil if there is none
	*findings
}

// findings are the results that the analyses of nested scripts share.
type findings struct {
	commands   []Command
	writes     []string // files named by output redirections, options and operands
	inside     []Inside
	trees      []string          // files and folders that are moved or removed with all that is in them
	rounds     int               // of the bodies of loops
	shown      int               // bytes of the texts of commands
	inner      int               // commands found inside wrappers
	innerWords int               // number of words in these commands
	parsers    [2]*syntax.Parser // for Bash and POSIX
	read       map[string]bool   // scripts that have been analyzed, by grammar and text
	latent     []string          // quoted texts that would run a command if they were evaluated
	evaluate   bool              // the line evaluates the values of variables as code
	room       expandable        // how much braces may still expand to
	location
	fallbacks
	begin       location
	isOfProject func(program, dir string) bool // see [ReadIn]
}

// maxCover is the maximum length in bytes of the text that Cover returns, because
// a person has to read it.
const maxCover = 120

func (a *analysis) addCommand(c Command) {
	c.outer, c.dir, c.moved = a.outer, a.dir, a.location != a.begin
	if a.shown += len(c.Text); a.shown > maxInnerWords { // a part may have the text of the whole line
		c.Text = text.Clip(c.Text, maxCover)
	}
	a.commands = append(a.commands, c)
}

func (a *analysis) doubt(text, format string, args ...any) {
	a.addCommand(Command{Text: text, Doubt: fmt.Sprintf(format, args...)})
}

func (a *analysis) unread(line, format string, args ...any) {
	a.addCommand(Command{Text: line, Unread: true,
		Doubt: "the command line cannot be read: " + fmt.Sprintf(format, args...)})
}

func (a *analysis) refuse(format string, args ...any) {
	a.addCommand(Command{Refused: true, Doubt: fmt.Sprintf(format, args...)})
}

// addWrite adds a file that the line writes, relative to the folder that cd changed
// to.
func (a *analysis) addWrite(name string) {
	if name != "" {
		a.writes = append(a.writes, a.placed(name))
	}
}

// placed returns a file's name relative to the folder in which the line starts.
func (a *analysis) placed(name string) string {
	if a.dir != "" && !path.IsAbs(name) && name[0] != '~' {
		return path.Join(a.dir, name)
	}
	return name
}

func (a *analysis) textOf(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(a.src) || from >= to {
		return ""
	}
	return text.Valid(a.src[from:to])
}
