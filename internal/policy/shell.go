package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/text"
)

const (
	// maxCommandLine is what Linux takes as one argument. A longer line could
	// not run, and a shorter analysis would be a weaker one.
	maxCommandLine = 128 << 10
	// maxNesting bounds shells within shells.
	maxNesting = 16
	// maxParens bounds runs of "(", on which the parser takes quadratic time.
	maxParens = 64
	// maxInner bounds the commands found inside wrappers, which ambiguous
	// options would multiply.
	maxInner = 2000
)

// simple is one part of a command line that rules speak about: a simple
// command, or something else that has an effect.
type simple struct {
	text  string
	words []word // empty where the part is no command
	// doubt tells why no rule on commands covers the part, "" if one may.
	doubt string
	// dynamic is set where the program is not known before running.
	dynamic bool
	// unread is set for the rest of a line that cannot be parsed.
	unread bool
	// ruin tells why the part would ruin the machine, "" if it would not.
	ruin string
	// refused is set where the part must not run at all.
	refused bool
}

func (s simple) equal(t simple) bool {
	return s.text == t.text && s.doubt == t.doubt && slices.Equal(s.words, t.words) && s.dynamic == t.dynamic && s.unread == t.unread && s.refused == t.refused && s.ruin == t.ruin
}

// root returns the program as it is written, "" where it is not known.
func (s *simple) root() string {
	if len(s.words) == 0 || s.dynamic {
		return ""
	}
	return s.words[0].text
}

// analysis collects the parts of one command line.
type analysis struct {
	reader
	src   string
	shell string
	depth int
	*findings
}

// findings is what all parts of an analysis add to.
type findings struct {
	parts  []simple
	writes []string        // files named by output redirections
	inner  int             // commands found inside wrappers
	read   map[string]bool // scripts that were analysed, by grammar and text
	dir    string          // where cd went, "" where that is not known
}

// analyse finds everything that a command line would run (spec section 8.4),
// and the files that it writes by redirection.
func analyse(shell, line string) (parts []simple, writes []string) {
	a := &analysis{findings: &findings{read: map[string]bool{}}}
	a.script(shell, line)
	return a.parts, a.writes
}

func (a *analysis) add(s simple) { a.parts = append(a.parts, s) }

func (a *analysis) doubt(text, format string, args ...any) {
	a.add(simple{text: text, doubt: fmt.Sprintf(format, args...)})
}

func (a *analysis) unread(line, format string, args ...any) {
	a.add(simple{text: line, unread: true, doubt: "the command line cannot be read: " + fmt.Sprintf(format, args...)})
}

func (a *analysis) refuse(format string, args ...any) {
	a.add(simple{refused: true, doubt: fmt.Sprintf(format, args...)})
}

// script analyses a whole text.
func (a *analysis) script(shell, line string) {
	switch {
	case len(line) > maxCommandLine:
		a.refuse("a command line of %d bytes is over the limit of %d", len(line), maxCommandLine)
		return
	case a.depth > maxNesting:
		a.refuse("shells are nested deeper than %d", maxNesting)
		return
	case strings.Contains(line, strings.Repeat("(", maxParens)):
		a.refuse("more than %d opening parentheses in a row", maxParens)
		return
	}
	key := shell + "\x00" + line
	if a.read[key] {
		return
	}
	a.read[key] = true
	if len(a.read) > maxInner {
		a.refuse("a command line with more than %d scripts in it", maxInner)
		return
	}
	if why := oddBytes(line); why != "" {
		a.unread(line, "%s", why)
	}
	switch shell {
	case "", ShellBash:
		a.reading(ShellBash, syntax.LangBash, line)
	case ShellPOSIX: // it may be dash, busybox or bash: the stricter reading counts
		first, dir := len(a.parts), a.dir
		a.reading(ShellPOSIX, syntax.LangPOSIX, line)
		second := len(a.parts)
		a.dir = dir
		a.reading(ShellPOSIX, syntax.LangBash, line)
		if slices.EqualFunc(a.parts[first:second], a.parts[second:], simple.equal) {
			a.parts = a.parts[:second]
		}
	default:
		a.foreign(shell, line)
	}
}

// reading analyses a text in one grammar. What stands before a syntax error
// counts too, since shells run it before they see the error.
func (a *analysis) reading(shell string, lang syntax.LangVariant, line string) {
	inner := *a
	inner.src, inner.shell = line, shell
	inner.consts = map[string]string{"HOME": "~"}
	parser := syntax.NewParser(syntax.Variant(lang))
	var stmts []*syntax.Stmt
	broken := false
	for stmt, err := range parser.StmtsSeq(strings.NewReader(line)) {
		if err != nil { // no break: the parser may go on after an error and would panic
			a.unread(line, "%v", err)
			broken = true
			continue
		}
		stmts = append(stmts, stmt)
		inner.walk(stmt)
	}
	if name := inner.forkBomb(stmts); name != "" {
		a.add(simple{text: line, ruin: "the function " + name + " starts itself again and again", doubt: "it declares a function"})
	}
	if broken {
		return
	}
	if err := prove(line, stmts, lang == syntax.LangPOSIX); err != nil {
		a.unread(line, "%v", err)
	}
}

// oddBytes names what shells and the parser may read in different ways.
func oddBytes(line string) string {
	if !utf8.ValidString(line) {
		return "invalid UTF-8"
	}
	for _, r := range line {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return fmt.Sprintf("control character %q", r)
		}
	}
	return ""
}

// foreign looks at the first word of each piece of a line in a grammar that is
// not known; this may deny and never allows.
func (a *analysis) foreign(shell, line string) {
	for _, piece := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";|&\n\r(){}`$", r) }) {
		words := make([]word, 0, 4)
		for _, f := range strings.Fields(piece) {
			words = append(words, word{text: strings.Trim(f, `"'`)})
		}
		if len(words) > 0 {
			a.add(simple{text: strings.TrimSpace(piece), words: words, doubt: "commands of " + shell + " are not analysed"})
		}
	}
	a.unread(line, "commands of %s are not analysed", shell)
}

func (a *analysis) textOf(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(a.src) || from >= to {
		return ""
	}
	return text.Valid(a.src[from:to])
}

// walk adds what a statement and everything in it does. Where cd goes inside a
// subshell counts there alone.
func (a *analysis) walk(root syntax.Node) {
	type entered struct {
		node syntax.Node
		dir  string
	}
	var path []entered
	syntax.Walk(root, func(n syntax.Node) bool {
		if n != nil {
			path = append(path, entered{n, a.dir})
			a.node(n)
			return true
		}
		last := path[len(path)-1]
		path = path[:len(path)-1]
		switch last.node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			a.dir = last.dir
		}
		return true
	})
}

// node adds what one node does. Every kind of node is named: one that is not
// is a doubt.
func (a *analysis) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		a.stmt(n)
	case *syntax.Redirect:
		a.redirect(n)
	case *syntax.CallExpr:
		a.assigns(n)
	case *syntax.DeclClause:
		a.doubt(a.textOf(n), "%s changes variables", n.Variant.Value)
		for _, as := range n.Args {
			a.runVariable(as)
		}
	case *syntax.FuncDecl:
		a.doubt(a.textOf(n), "it declares a function")
	case *syntax.CoprocClause:
		a.doubt(a.textOf(n), "it starts a coprocess")
	case *syntax.TimeClause:
		a.doubt(a.textOf(n), "time runs another command")
	case *syntax.WordIter:
		if len(n.Items) > 0 {
			a.consts[n.Name.Value] = a.word(n.Items[0]).text
		}
		a.doubt(a.textOf(n), "a loop sets the variable %s", n.Name.Value)
	case *syntax.LetClause, *syntax.ArithmCmd, *syntax.CStyleLoop:
		a.doubt(a.textOf(n), "arithmetic may set variables")
	case *syntax.BinaryArithm, *syntax.UnaryArithm:
		a.arithmetic(n)
	case *syntax.ParamExp:
		a.param(n)
	case *syntax.BinaryTest, *syntax.UnaryTest:
		a.test(n)
	case *syntax.ExtGlob:
		a.doubt(a.textOf(n), "extended globs mean different things to different shells")
	case *syntax.File, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause,
		*syntax.CaseClause, *syntax.CaseItem, *syntax.BinaryCmd, *syntax.Word, *syntax.Lit, *syntax.SglQuoted,
		*syntax.DblQuoted, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.Assign, *syntax.ArrayExpr,
		*syntax.ArrayElem, *syntax.ParenArithm, *syntax.ParenTest, *syntax.TestClause, *syntax.Comment:
	default:
		a.doubt(a.textOf(n), "the analysis does not know %T", n)
	}
}

// stmt adds the simple command of a statement, with what it reads on stdin.
func (a *analysis) stmt(s *syntax.Stmt) {
	if s.Coprocess || s.Disown {
		a.doubt(a.textOf(s), "it is detached from the shell")
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	var stdin *word
	for _, r := range s.Redirs {
		body := r.Hdoc
		if r.Op == syntax.WordHdoc {
			body = r.Word
		}
		if body != nil {
			w := a.word(body)
			stdin = &w
		}
	}
	a.command(a.textOf(call), a.words(call.Args), stdin)
}

// command adds a simple command and what it runs in turn.
func (a *analysis) command(text string, words []word, stdin *word) {
	s := simple{text: text}
	for len(words) > 1 && words[0].known && words[0].text == "--" { // time -- ls
		words = words[1:]
	}
	for len(words) > 0 && !words[0].known {
		s.dynamic, s.doubt = true, "its program is not known before running"
		if words[0].text != "" {
			break
		}
		words = words[1:] // an empty expansion leaves no word behind
	}
	s.words = words
	if len(words) == 0 {
		a.add(s)
		return
	}
	name := programName(words[0].text)
	s.ruin = a.ruins(name, words[1:])
	run := a.runs(name, words, stdin)
	if s.doubt == "" {
		s.doubt = run.doubt
	}
	s.dynamic = s.dynamic || run.dynamic
	a.add(s)
	a.writes = append(a.writes, run.writes...)
	if run.rereads != "" {
		a.unread(text, "%s", run.rereads)
	}
	deeper := *a
	deeper.depth++
	for _, script := range run.scripts {
		deeper.script(run.shell, script)
	}
	for _, inner := range run.commands {
		a.inner++
		if deeper.depth > maxNesting || a.inner > maxInner {
			a.refuse("commands are nested deeper than %d, or too many", maxNesting)
			return
		}
		deeper.command(text, inner, nil)
	}
}

// programName returns the last element of a program's path, in lower case and
// without the extension of a Windows program: what banned programs and rules
// that deny are compared with.
func programName(text string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(text, `\`, "/")))
	for _, ext := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}
