package shell

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/lazy"
)

// Read finds everything that a line would run, and the files that it would write.
// The grammar "" means Bash. dir is the folder in which the line runs, or "" if it
// is not known. Read never fails: a part that it cannot parse becomes a command
// that is Unread.
func Read(grammar, line, dir string) Line { return ReadIn(grammar, line, dir, nil) }

// ReadIn is [Read] for a project. A program that an option makes start in a folder for which isOfProject
// returns true, as in "git -C dir status", is read as if a cd to the folder preceded it. The folder is absolute.
func ReadIn(grammar, line, dir string, isOfProject func(program, dir string) bool) Line {
	a := &analysis{findings: &findings{
		isOfProject: isOfProject, read: map[string]bool{}, room: expandable{maxExpanded, maxExpandedBytes},
		location: location{start: dir}, begin: location{start: dir},
	}}
	a.folders = foldersOf(line)
	a.script(grammar, line)
	a.evaluated()
	return Line{Commands: a.commands, Writes: a.writes, Inside: a.inside, Trees: a.trees}
}

// script analyzes a complete script.
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
		a.refuse("a command line contains more than %d scripts", maxInner)
		return
	}
	if why := ambiguousBytes(line); why != "" {
		a.unread(line, "%s", why)
	}
	switch shell {
	case "", Bash:
		a.reading(Bash, syntax.LangBash, line)
	case POSIX: // sh may be dash, busybox or bash, so read it in both grammars
		first, start, others := len(a.commands), a.location, a.fallbacks
		a.reading(POSIX, syntax.LangPOSIX, line)
		second := len(a.commands)
		a.location, a.fallbacks = start, others
		a.reading(POSIX, syntax.LangBash, line)
		if slices.EqualFunc(a.commands[first:second], a.commands[second:], Command.equal) {
			a.commands = a.commands[:second]
		}
	default:
		a.foreign(shell, line)
	}
}

// reading analyzes a script in one grammar. It includes the commands before a
// syntax error, because shells run them before they reach the error.
func (a *analysis) reading(shell string, lang syntax.LangVariant, line string) {
	inner := *a
	inner.src, inner.shell = line, shell
	inner.consts, inner.fixed = map[string]string{"HOME": "~"}, map[string]string{}
	if lang == syntax.LangBash {
		inner.braces = &expander{src: line, room: &a.room, done: map[*syntax.Word]expansion{}}
	}
	parser := a.parser(lang)
	var stmts []*syntax.Stmt
	broken := false
	for stmt, err := range parser.StmtsSeq(strings.NewReader(line)) {
		if err != nil { // do not break: the parser may continue after an error, and would then panic
			a.unread(line, "%v", err)
			broken = true
			continue
		}
		stmts = append(stmts, stmt)
	}
	// This is a second loop because the parser reads the body of a here-document after its statement.
	for _, stmt := range stmts {
		inner.walk(stmt)
	}
	if why := inner.forkBomb(stmts); why != "" {
		a.addCommand(Command{Text: line, Catastrophic: why, Doubt: "it declares a function"})
	}
	if broken {
		return
	}
	if err := prove(line, stmts, lang == syntax.LangPOSIX); err != nil {
		a.unread(line, "%v", err)
	}
}

// parser returns the parser of a grammar, which is large enough to be worth keeping.
func (f *findings) parser(lang syntax.LangVariant) *syntax.Parser {
	p := &f.parsers[0]
	if lang == syntax.LangPOSIX {
		p = &f.parsers[1]
	}
	if *p == nil {
		*p = syntax.NewParser(syntax.Variant(lang))
	}
	return *p
}

// ambiguousBytes describes bytes that shells and the parser may read differently;
// "" if there are none.
func ambiguousBytes(line string) string {
	if !utf8.ValidString(line) {
		return "invalid UTF-8"
	}
	for _, r := range line {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return fmt.Sprintf("control character %q", r)
		}
	}
	if !strings.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return ""
	}
	plain := strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(line)
	if setsLocale.Get().MatchString(knownLocale.Get().ReplaceAllString(plain, " ")) {
		return "characters beyond ASCII, which another locale may read differently"
	}
	return ""
}

// setsLocale matches what may change the variables that say how a shell reads bytes: an
// assignment, a loop, or a command that changes the variables in its arguments.
// knownLocale matches assignments to them that do not affect text in UTF-8.
var (
	setsLocale = lazy.NewRegexp(`(?s)\b(LC_|LANG)[^\s;&|]*=|\b(for|select)\s+\S*(LC_|LANG)|` +
		`\b(read|readarray|mapfile|unset|export|declare|typeset|local|readonly|getopts|let|eval|wait|env|source|coproc|printf\s.*-\w*v)\b.*(LC_|LANG)|\bprintf\s.*v(LC_|LANG)`)
	knownLocale = lazy.NewRegexp(`\b(LC_[A-Z]+|LANG)=((C|[a-z]{2}_[A-Z]{2})(\.(UTF-8|utf8))|C|POSIX)?([\s;&|)]|$)`)
)

// foreign adds the first word of each piece of a line in an unsupported grammar as
// a command. This may cause a deny, but never an allow.
func (a *analysis) foreign(shell, line string) {
	for _, words := range pieces(word{text: line}) {
		a.addCommand(Command{Text: joinWords(words), words: words,
			short: words, Doubt: "commands of " + shell + " are not analyzed"})
	}
	a.unread(line, "commands of %s are not analyzed", shell)
}

// walk adds the effects of a statement and everything in it. A cd in a subshell
// has no effect outside.
func (a *analysis) walk(root syntax.Node) {
	type entered struct {
		node   syntax.Node
		where  location
		others fallbacks
	}
	var path []entered
	syntax.Walk(root, func(n syntax.Node) bool {
		if loop, ok := n.(*syntax.ForClause); ok && a.unroll(loop) {
			return false
		}
		if n != nil {
			path = append(path, entered{n, a.location, a.fallbacks})
			a.node(n)
			return true
		}
		last := path[len(path)-1]
		path = path[:len(path)-1]
		switch n := last.node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			a.location, a.fallbacks = last.where, last.others
		case *syntax.Stmt:
			before := len(last.others.failed)
			above := func(i int) syntax.Node { return path[len(path)-i].node }
			if len(a.failed) > before && !onlyIf(n, len(path), above) {
				a.settle(before, a.location)
			}
		}
		return true
	})
}

// onlyIf reports whether what follows a statement runs only if the statement succeeds. above
// returns the nodes that contain it; depth 1 is the innermost.
func onlyIf(s *syntax.Stmt, depth int, above func(int) syntax.Node) bool {
	for i := 1; i < depth && !s.Negated && !s.Background; i += 2 {
		list, ok := above(i).(*syntax.BinaryCmd)
		if !ok || list.Op != syntax.AndStmt {
			return false
		}
		if list.X == s {
			return true
		}
		if s, ok = above(i + 1).(*syntax.Stmt); !ok {
			return false
		}
	}
	return false
}

// maxRounds is the number of times that the bodies of loops are analyzed for single values.
const maxRounds = 64

// unroll analyzes a loop once for each of its values. The values must be plain words, and the body
// must not use arithmetic, which may set a variable named by another's value, or use the variable
// except to expand it.
func (a *analysis) unroll(loop *syntax.ForClause) bool {
	words, ok := loop.Loop.(*syntax.WordIter)
	if !ok || loop.Select || len(words.Items) == 0 || !isLocalVariable(words.Name.Value) {
		return false
	}
	name, values := words.Name.Value, make([]string, len(words.Items))
	for i, item := range words.Items {
		if values[i] = item.Lit(); !plainWord.Get().MatchString(values[i]) {
			return false
		}
	}
	body := a.src[loop.DoPos.Offset():loop.DonePos.Offset()]
	if a.rounds+len(values) > maxRounds ||
		regexp.MustCompile(`\(\(|\[\[|\$\{\w+[:\[]|([^${\w-]|[^$]\{)`+name+`\b`).MatchString(body) {
		return false
	}
	a.walk(words)
	for _, value := range values {
		a.rounds++
		a.fixed[name] = value
		for _, stmt := range loop.Do {
			a.walk(stmt)
		}
	}
	delete(a.fixed, name)
	return true
}

// node adds the effect of one node. It lists all kinds of nodes that it knows; any
// other kind is a doubt.
func (a *analysis) node(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		a.stmt(n)
	case *syntax.Redirect:
		a.redirect(n)
	case *syntax.CallExpr:
		a.assigns(n)
	case *syntax.DeclClause:
		c := Command{
			Text: a.textOf(n),
			Passes: n.Variant.Value == "export" && len(n.Args) > 0 &&
				!slices.ContainsFunc(n.Args, func(as *syntax.Assign) bool { return !a.isPlainVariable(as) }),
		}
		if !c.Passes {
			c.Doubt = n.Variant.Value + " changes variables"
		}
		a.addCommand(c)
		a.evaluate = true // in a subscript, an integer variable or a list
		for _, as := range n.Args {
			a.runVariable(as)
			a.declare(as)
		}
	case *syntax.FuncDecl:
		a.doubt(a.textOf(n), "it declares a function")
	case *syntax.CoprocClause:
		a.addCommand(Command{Text: a.textOf(n), Doubt: "it starts a coprocess", dynamic: true})
	case *syntax.TimeClause:
		a.addCommand(Command{Text: a.textOf(n), Passes: true})
	case *syntax.WordIter:
		items := a.listWords(n.Items...)
		if len(items) > 0 {
			a.consts[n.Name.Value] = items[0].text
		}
		a.pieces(items...)
		if isLocalVariable(n.Name.Value) {
			a.addCommand(Command{Text: a.textOf(n), Passes: true})
		} else {
			a.doubt(a.textOf(n), "a loop sets the variable %s", n.Name.Value)
		}
	case *syntax.LetClause, *syntax.ArithmCmd, *syntax.CStyleLoop:
		a.doubt(a.textOf(n), "arithmetic may set variables")
		a.evaluate = true
	case *syntax.ArithmExp:
		a.evaluate = true
	case *syntax.Word:
		a.quoted(n)
	case *syntax.ArrayElem:
		a.listWords(n.Value)
	case *syntax.BinaryArithm, *syntax.UnaryArithm:
		a.arithmetic(n)
	case *syntax.ParamExp:
		a.param(n)
	case *syntax.BinaryTest, *syntax.UnaryTest:
		a.test(n)
	case *syntax.ExtGlob:
		a.doubt(a.textOf(n), "extended globs mean different things to different shells")
	case *syntax.File, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause,
		*syntax.CaseClause, *syntax.CaseItem, *syntax.BinaryCmd, *syntax.Lit, *syntax.SglQuoted,
		*syntax.DblQuoted, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Assign, *syntax.ArrayExpr,
		*syntax.ParenArithm, *syntax.ParenTest, *syntax.TestClause, *syntax.Comment:
	default:
		a.doubt(a.textOf(n), "the analysis does not support %T", n)
	}
}

// stmt adds the simple command of a statement, with what it reads from stdin.
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
		switch {
		case r.Op == syntax.WordHdoc:
			w := a.word(r.Word)
			w.known = w.known && !mayExpand(r.Word) // some versions of Bash expand them here
			stdin = &w
		case r.Hdoc != nil:
			w := a.hereDocument(r)
			stdin = &w
		}
	}
	a.command(a.textOf(call), a.fields(a.listWords(call.Args...)), stdin)
}

// command adds a simple command and the commands that it runs in turn.
func (a *analysis) command(text string, words []word, stdin *word) {
	c := Command{Text: text}
	for len(words) > 1 && words[0].known && words[0].text == "--" { // as in time -- ls
		for words = words[1:]; len(words) > 1 && strings.Contains(words[0].text, "="); {
			words = words[1:]
		}
	}
	for len(words) > 0 && !words[0].known {
		c.dynamic, c.Doubt = true, "its program is not known before it runs"
		if words[0].text != "" {
			break
		}
		words = words[1:] // an expansion that is empty is not a word
	}
	c.words = words
	if len(words) == 0 {
		a.addCommand(c)
		return
	}
	if short, where := a.enter(words); where != a.location {
		outside := a.location
		defer func() { a.location = outside }()
		words, a.location = short, where
	}
	name, plain := programName(words[0].text), plainName(words[0].text)
	at := a.location
	if c.Catastrophic = a.ruins(plain, words[1:]); a.location != at {
		a.fallbacks.cd(name, words[1:], at)
	}
	run := runsOf(a.shell, name, words, stdin)
	c.Doubt = cmp.Or(c.Doubt, run.doubt)
	if name == "read" && slices.ContainsFunc(words, func(w word) bool { return a.fixed[w.text] != "" }) {
		c.Doubt = "it sets the variable of a loop"
	}
	c.dynamic = c.dynamic || run.dynamic
	c.Exact, c.Named, c.lead, c.short = harmless(words)
	stays := name == "cd" && c.Exact == "" && a.isOfProject != nil && path.IsAbs(a.dir) && a.isOfProject(name, a.dir)
	c.Passes = (run.passes || stays) && c.Doubt == "" && !c.dynamic
	if c.Doubt == "" && (len(run.scripts) > 0 || len(run.commands) > 0 && !run.through || run.dynamic) {
		c.Doubt = c.Exact
	}
	run.changes(plain, words[1:])
	a.addFiles(&c, name, run)
	a.addCommand(c)
	a.evaluate = a.evaluate || run.evaluates
	if run.rereads != "" {
		a.unread(text, "%s", run.rereads)
	}
	deeper := *a
	deeper.depth++
	if run.through && deeper.outer == nil {
		deeper.outer = &c
	}
	for _, script := range run.scripts {
		deeper.script(run.shell, script)
	}
	for _, v := range run.variables {
		name, value, _ := strings.Cut(v.text, "=")
		deeper.variable(v.text, name, word{text: value, known: v.known})
	}
	if run.tooMany {
		a.innerWords = maxInnerWords
	}
	for _, inner := range run.commands {
		a.inner, a.innerWords = a.inner+1, a.innerWords+len(inner)
		if deeper.depth > maxNesting || a.inner > maxInner || a.innerWords > maxInnerWords {
			a.refuse("commands are nested deeper than %d, or too many", maxNesting)
			return
		}
		deeper.command(text, inner, nil)
	}
}

// enter returns the words of a command without an option that names a folder of the project, and where
// the command then starts. Such an option follows the program.
func (a *analysis) enter(words []word) (short []word, where location) {
	where = a.location
	if a.isOfProject == nil || len(words) < 3 || !words[1].known || !words[2].known ||
		words[2].text == "" || strings.ContainsAny(words[2].text[:1], "-~") ||
		slices.Contains(strings.Split(words[2].text, "/"), "..") { // which leads elsewhere behind a link
		return words, where
	}
	t := tableOf(programName(words[0].text))
	if t == nil || !t.isNamed(words[0].text) || !slices.Contains(strings.Split(t.attrs["into"], ","), words[1].text) {
		return words, where
	}
	if where.cd("cd", words[2:3]); !path.IsAbs(where.dir) || !a.isOfProject(t.path, where.dir) {
		return words, a.location
	}
	return append(words[:1:1], words[3:]...), where
}

// assigns adds the assignments of a simple command, which may consist of nothing
// else.
func (a *analysis) assigns(c *syntax.CallExpr) {
	text := a.textOf(c)
	for _, as := range c.Assigns {
		if as.Name == nil {
			continue
		}
		if len(c.Args) == 0 && as.Value != nil && as.Index == nil {
			a.consts[as.Name.Value] = a.word(as.Value).text
		}
		if a.isPlainVariable(as) ||
			len(c.Args) == 0 && isLocalVariable(as.Name.Value) && as.Index == nil && as.Array == nil {
			a.addCommand(Command{Text: text, Passes: true})
		} else {
			a.doubt(text, "it sets the variable %s", as.Name.Value)
		}
		a.evaluate = a.evaluate || as.Index != nil
		a.pieces(a.word(as.Value))
		a.runVariable(as)
	}
}

// listWords converts words in a place where shells expand braces. If the expansion of a
// word is not known, the word becomes a part that is unread.
func (a *analysis) listWords(words ...*syntax.Word) []word {
	var out []word
	for _, w := range words {
		out = append(out, a.expanded(w)...)
		if a.braces == nil || !mayExpand(w) {
			continue
		}
		x := a.braces.expand(w)
		if x.err != nil {
			a.unread(a.textOf(w), "%v", x.err)
		}
		for _, each := range x.words {
			a.quoted(each)
		}
	}
	return out
}

// declare adds the assignments in an argument of declare, export and similar
// builtins after brace expansion.
func (a *analysis) declare(as *syntax.Assign) {
	if as.Value == nil || !mayExpand(as.Value) {
		return
	}
	arg := &syntax.Word{Parts: as.Value.Parts}
	if as.Name != nil {
		arg.Parts = slices.Concat([]syntax.WordPart{&syntax.Lit{Value: as.Name.Value + "="}}, arg.Parts)
	}
	for _, w := range a.listWords(arg) {
		if name, value, ok := strings.Cut(w.text, "="); ok {
			a.variable(a.textOf(as), strings.TrimSuffix(name, "+"), word{text: value})
		}
	}
}

// runVariable adds what shells and programs run because of an assignment.
func (a *analysis) runVariable(as *syntax.Assign) {
	if as.Name != nil && as.Value != nil {
		a.variable(a.textOf(as), as.Name.Value, a.word(as.Value))
	}
	if as.Name != nil && as.Array != nil {
		for _, e := range as.Array.Elems {
			if e.Value != nil {
				a.variable(a.textOf(as), as.Name.Value, a.word(e.Value))
			}
		}
	}
}

// variable adds the value of a variable if shells or programs run it.
func (a *analysis) variable(text, name string, w word) {
	if !runsText.Get().MatchString(name) {
		return
	}
	deeper := *a
	deeper.depth++
	deeper.script(Bash, strings.TrimPrefix(w.text, "!")) // ! begins a shell command in the settings of git
	if strings.HasPrefix(name, "PS") {                   // prompts are expanded
		deeper.script(Bash, "echo \""+w.text+"\"")
	}
	if !w.known || hasWord("TAR_OPTIONS MAKEFLAGS BASH_ENV ENV GIT_CONFIG_PARAMETERS", name) ||
		strings.HasPrefix(name, "BASH_FUNC_") {
		a.addCommand(Command{Text: text, dynamic: true, Doubt: "it sets a variable whose value other programs run"})
	}
}

// runsText matches variables whose values are run. It is compiled on first use,
// because most runs of toolreg do not analyze a command.
var runsText = lazy.NewRegexp(`^(PS[0-4]|PROMPT_COMMAND|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PAGER|EDITOR|VISUAL|BROWSER|SHELL|LESSOPEN|LESSCLOSE|MANPAGER|` +
	`GIT_.*(PAGER|EDITOR|COMMAND|SSH|ASKPASS|DIFF|CONFIG.*)|SSH_ASKPASS|RSYNC_RSH|TAR_OPTIONS|MAKEFLAGS|BASH_FUNC_.*|BASH_CMDS|BASH_ALIASES)$`)

// evaluated adds the commands that the quoted texts of a line would run, if
// anything in the line evaluates them.
func (a *analysis) evaluated() {
	deeper := *a
	deeper.depth++
	for i := 0; i < len(a.latent) && a.evaluate; i++ { // one text may contain another
		deeper.script(Bash, "cat <<TOOLREG\n"+a.latent[i]+"\nTOOLREG\n")
		if strings.Contains(a.latent[i], "<(") || strings.Contains(a.latent[i], ">(") {
			// It is expanded if the text becomes a list, but not in a here-document.
			a.addCommand(Command{Text: a.latent[i], Doubt: "its text may be run as a command", dynamic: true})
		}
	}
}

// redirect adds redirections that write files, or that read from the network.
func (a *analysis) redirect(r *syntax.Redirect) {
	text := a.textOf(r)
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		a.doubt(text, "it sets the variable %s", r.N.Value)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	}
	targets := a.listWords(r.Word)
	if len(targets) == 0 {
		a.doubt(text, "its target is not known before the line runs")
	}
	for _, target := range targets {
		a.redirected(text, r.Op, target)
	}
}
