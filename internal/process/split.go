package process

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/google/shlex"
	"mvdan.cc/sh/v3/syntax"
)

// argvHint is the advice for a command line that only a shell could run.
const argvHint = "run it with sh -c '...', or quote the character"

// maxLine limits a command line, in bytes, because the parser is recursive.
const maxLine = 32 << 10

// Split splits a command line into words like a POSIX shell, with google/shlex.
// It refuses unquoted shell operators (pipes, lists, redirections,
// substitutions, globs, background, comments) with an error that suggests
// ["sh","-c",...]; it also refuses an empty line. $VAR, ${VAR} and
// ${VAR:-default} are kept for later expansion; a quoted or escaped dollar sign
// becomes $$, which expansion turns into one.
func Split(line string) ([]string, error) {
	if strings.TrimSpace(line) == "" {
		return nil, errors.New("the command is empty")
	}
	if len(line) > maxLine {
		return nil, fmt.Errorf("the command has %d bytes, but the limit is %d; write it as a list", len(line), maxLine)
	}
	if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
		return nil, errors.New("the command contains a NUL byte or invalid UTF-8")
	}
	if runtime.GOOS == "windows" && strings.Contains(line, `\`) {
		return nil, errors.New(
			`a backslash is an escape in a command line; write / instead, or the command as a list, ["C:\\...", ...]`)
	}
	if err := checkPlain(line); err != nil {
		return nil, err
	}
	words, err := shlex.Split(posixQuotes(line))
	if err != nil {
		return nil, fmt.Errorf("cannot split the command into words: %w", err)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("the command is empty")
	}
	return words, nil
}

// checkPlain accepts only one simple command of plain words. shlex cannot
// distinguish quoted operators from unquoted ones; this parser can.
func checkPlain(line string) error {
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(line), "")
	if err != nil {
		return fmt.Errorf("cannot split the command into words: %s; check its quotes, or %s",
			parseReason(err), argvHint)
	}
	if len(file.Stmts) > 1 {
		return refuse("several commands")
	}
	if len(file.Last) > 0 || len(file.Stmts) == 1 && len(file.Stmts[0].Comments) > 0 {
		return refuse("a comment")
	}
	if len(file.Stmts) == 0 {
		return errors.New("the command is empty")
	}
	return checkStmt(file.Stmts[0])
}

func checkStmt(s *syntax.Stmt) error {
	switch {
	case len(s.Redirs) > 0:
		return refuse("a redirection")
	case s.Background || s.Coprocess || s.Disown:
		return refuse("a background operator")
	case s.Semicolon.IsValid():
		return refuse("a command separator")
	case s.Negated:
		return refuse("a negation")
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return refuse("shell syntax (a pipe, a list or a compound command)")
	}
	if len(call.Assigns) > 0 {
		return fmt.Errorf(
			`the command begins with an assignment, which needs a shell; put "env" before it, or %s`, argvHint)
	}
	for _, w := range call.Args {
		if err := checkParts(w.Parts, false); err != nil {
			return err
		}
	}
	return nil
}

func checkParts(parts []syntax.WordPart, quoted bool) error {
	for _, part := range parts {
		var err error
		switch p := part.(type) {
		case *syntax.Lit:
			if !quoted && hasGlob(p.Value) {
				err = refuse("a glob (* or ?)")
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				err = refuse(`a $'...' string`)
			}
		case *syntax.DblQuoted:
			if p.Dollar {
				err = refuse(`a $"..." string`)
			} else {
				err = checkParts(p.Parts, true)
			}
		case *syntax.ParamExp:
			err = checkParam(p, quoted)
		default:
			err = refuse("a substitution")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkParam accepts $VAR, ${VAR} and ${VAR:-plain text}.
func checkParam(p *syntax.ParamExp, quoted bool) error {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if !syntax.ValidName(name) || !isSimple(p) || p.Exp != nil && p.Exp.Op != syntax.DefaultUnsetOrNull {
		return refuse("a parameter expansion other than $NAME, ${NAME} or ${NAME:-default}")
	}
	if p.Exp == nil || p.Exp.Word == nil {
		return nil
	}
	for _, part := range p.Exp.Word.Parts {
		if lit, ok := part.(*syntax.Lit); !ok || !quoted && strings.ContainsAny(lit.Value, " \t\r\n") {
			return refuse("a default that is not plain text; a default with spaces needs double quotes around the whole")
		}
	}
	return nil
}

func isSimple(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Flags == nil &&
		p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Names == 0
}

func refuse(what string) error {
	return fmt.Errorf("the command contains %s, which only a shell understands; %s", what, argvHint)
}

// parseReason returns the parser's message without its position.
func parseReason(err error) string {
	if perr, ok := errors.AsType[syntax.ParseError](err); ok {
		return perr.Text
	}
	return err.Error()
}

// hasGlob reports whether a literal, which keeps its backslashes, has an
// unescaped * or ?.
func hasGlob(lit string) bool {
	for i := 0; i < len(lit); i++ {
		switch lit[i] {
		case '\\':
			i++
		case '*', '?':
			return true
		}
	}
	return false
}

// posixQuotes rewrites what shlex parses differently from POSIX: within double
// quotes a backslash escapes only $ ` " \ and newline, and a backslash before a
// newline is removed with it. Literal dollar signs become $$.
func posixQuotes(line string) string {
	var b strings.Builder
	double, single := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' && !double:
			single = !single
		case c == '"' && !single:
			double = !double
		case c == '$' && single:
			b.WriteByte('$')
		case c == '\\' && !single && i+1 < len(line):
			i++
			c = line[i]
			b.WriteString(escaped(c, double))
			if c == '\n' {
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// escaped returns the prefix for a character that follows a backslash, so that
// shlex parses it like POSIX.
func escaped(c byte, double bool) string {
	switch {
	case c == '\n':
		return ""
	case c == '$':
		return "$"
	case double && c != '`' && c != '"' && c != '\\':
		return `\\`
	}
	return `\`
}
