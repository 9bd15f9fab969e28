package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolreg/toolreg/internal/text"
)

// word is a shell word, as far as it can be determined without running the line.
// If known is false, text is a guess that treats unknown parts as empty, which is
// correct for common ways to disguise a name (r$@m, ${x}rm). Decisions to deny may
// rely on a guess, decisions to allow never do.
type word struct {
	text  string
	known bool
	split bool // the shell splits the result into words
	glob  bool // has an unquoted *, ? or [
	// expanded is set if text is exactly the result of brace expansion in Bash,
	// which not all shells perform.
	expanded bool
	// plainStart is set if the word begins with a known byte other than a dash and is
	// not split, so that it cannot be an option.
	plainStart bool
	gap        bool             // has a part that cannot even be guessed
	folder     *syntax.ParamExp // while the word is read, what [reader.folder] returned
}

// programName returns the last element of a program's path in lower case, without
// the extensions of programs on Windows. Banned programs and rules that deny are
// compared with it.
func programName(word string) string {
	name := text.Folded(path.Base(strings.ReplaceAll(word, `\`, "/")))
	for _, ext := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// evaluated reports whether a shell that uses the word as a variable name may run
// a command in its subscript.
func evaluated(w word) bool {
	return strings.Contains(w.text, "[") && (!w.known || strings.ContainsAny(w.text, "$`"))
}

func joinWords(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// pieces returns the commands in a text that may be a command line of some grammar. It divides the text at
// characters that may separate commands, so it may find too many, and no rule that allows covers them.
func pieces(w word) (out [][]word) {
	for piece := range strings.FieldsFuncSeq(w.text, func(r rune) bool { return strings.ContainsRune(";|&\n\r(){}`$", r) }) {
		var words []word
		for f := range strings.FieldsSeq(piece) {
			words = append(words, word{text: strings.Trim(f, `"'`), known: w.known})
		}
		if len(words) > 0 {
			out = append(out, words)
		}
	}
	return out
}

func hasWord(list, item string) bool { return slices.Contains(strings.Fields(list), item) }

func operands(args []word) []word {
	var out []word
	for i, w := range args {
		if w.text == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(w.text, "-") {
			out = append(out, w)
		}
	}
	return out
}

func lastOperand(args []word) []word {
	all := operands(args)
	return all[max(0, len(all)-1):]
}

// reader converts words of the syntax tree. consts are the variables that the line
// sets to plain text, and fixed those that certainly have a value, which is one word. folders are those
// of [foldersOf].
type reader struct {
	consts  map[string]string
	fixed   map[string]string
	folders map[string]string
	braces  *expander
}

// foldersOf returns the variables that are certainly names of folders, because no word of the line can
// set them: HOME, which is ~, and PWD, which is the current one.
func foldersOf(line string) map[string]string {
	out := map[string]string{}
	bare := strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(line)
	for name, folder := range map[string]string{"HOME": "~", "PWD": "."} {
		if strings.Count(bare, name) == strings.Count(bare, "$"+name)+strings.Count(bare, "${"+name+"}") &&
			!strings.Contains(line, "$'") && !strings.Contains(bare, "IFS") {
			out[name] = folder
		}
	}
	return out
}

// folder returns the variable with which a word begins if it is a folder; else nil.
func (r *reader) folder(parts []syntax.WordPart) *syntax.ParamExp {
	for len(parts) > 0 {
		switch p := parts[0].(type) {
		case *syntax.DblQuoted:
			parts = p.Parts
		case *syntax.ParamExp:
			if r.folders[nameOf(p)] != "" {
				return p
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// words converts words of the syntax tree in a place where shells expand braces
// and split words, so that a word may become several.
func (r *reader) words(args []*syntax.Word) []word {
	out := make([]word, 0, len(args))
	for _, a := range args {
		out = append(out, r.expanded(a)...)
	}
	return r.fields(out)
}

// expanded converts a word in a place where shells expand braces.
func (r *reader) expanded(w *syntax.Word) []word {
	whole := r.word(w)
	if !mayExpand(w) {
		return []word{whole}
	}
	whole.known = false
	if r.braces == nil {
		return []word{whole}
	}
	x := r.braces.expand(w)
	if x.err != nil {
		whole.gap = true
		return []word{whole}
	}
	out := make([]word, len(x.words))
	for i, each := range x.words {
		out[i] = r.word(each)
		out[i].expanded, out[i].known = out[i].known, false
		out[i].plainStart = !out[i].split && startsPlain(w.Parts)
	}
	return out
}

// fields splits the words that a shell splits.
func (r *reader) fields(words []word) []word {
	out := make([]word, 0, len(words))
	for _, w := range words {
		if !w.split || !strings.ContainsAny(w.text, " \t\n") {
			out = append(out, w)
			continue
		}
		fields := strings.Fields(w.text)
		if len(fields) == 0 {
			fields = []string{""} // an unknown number of words
		}
		for _, f := range fields {
			out = append(out, word{text: f})
		}
	}
	return out
}

func (r *reader) word(w *syntax.Word) word {
	out := word{known: true}
	if w == nil {
		return out
	}
	if w.Lit() == "[" { // the program [, not a glob
		return word{text: "[", known: true, plainStart: true}
	}
	var b strings.Builder
	out.folder = r.folder(w.Parts)
	for _, part := range w.Parts {
		r.part(&b, &out, part, false)
	}
	out.text = b.String()
	if len(out.text) > 1 && out.text[1] != '/' && out.folder != nil { // as in $HOME.old
		out.known, out.gap = false, true
	}
	out.folder = nil
	out.plainStart = !out.split && startsPlain(w.Parts)
	return out
}

// hereDocument returns the text of a here-document.
func (r *reader) hereDocument(n *syntax.Redirect) word {
	delimiter := n.Word.Lit()
	quoted := delimiter == "" || strings.Contains(delimiter, `\`)
	escapes := strings.NewReplacer(`\\`, `\`, `\$`, "$", "\\`", "`", "\\\n", "")
	out := word{known: true}
	var b strings.Builder
	for _, part := range n.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case !ok:
			r.part(&b, &out, part, true)
		case quoted:
			b.WriteString(lit.Value)
		default:
			b.WriteString(escapes.Replace(lit.Value))
		}
	}
	out.text = b.String()
	return out
}

// startsPlain reports whether the first byte is known and is neither a dash nor
// the beginning of an expansion.
func startsPlain(parts []syntax.WordPart) bool {
	if len(parts) == 0 {
		return false
	}
	switch p := parts[0].(type) {
	case *syntax.Lit:
		return p.Value != "" && strings.IndexByte("-*?[{~\\", p.Value[0]) < 0
	case *syntax.SglQuoted:
		return !p.Dollar && p.Value != "" && p.Value[0] != '-'
	case *syntax.DblQuoted:
		return !p.Dollar && startsPlain(p.Parts)
	case *syntax.CmdSubst: // it may print nothing
		return printsCommit(p) && (len(parts) == 1 || startsPlain(parts[1:])) || printsText(p)
	case *syntax.ProcSubst: // a path
		return true
	}
	return false
}

// printsText reports whether a substitution prints a here-document that begins with
// a character that neither begins an option nor is expanded.
func printsText(p *syntax.CmdSubst) bool {
	if len(p.Stmts) != 1 || len(p.Stmts[0].Redirs) != 1 || p.Stmts[0].Redirs[0].Hdoc == nil {
		return false
	}
	call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 1 || call.Args[0].Lit() != "cat" || len(p.Stmts[0].Redirs[0].Hdoc.Parts) == 0 {
		return false
	}
	lit, ok := p.Stmts[0].Redirs[0].Hdoc.Parts[0].(*syntax.Lit)
	return ok && lit.Value != "" && lit.Value[0] > ' ' &&
		lit.Value[0] < 0x7f && strings.IndexByte("-~$`\\", lit.Value[0]) < 0
}

// printsCommit reports whether a substitution prints only commit ids, and
// arguments for which git finds no commit.
func printsCommit(p *syntax.CmdSubst) bool {
	if len(p.Stmts) != 1 {
		return false
	}
	call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 3 || call.Args[0].Lit() != "git" || !hasWord("rev-parse merge-base", call.Args[1].Lit()) {
		return false
	}
	return !slices.ContainsFunc(call.Args[2:], func(w *syntax.Word) bool {
		name := w.Lit()
		return name == "" || name[0] == '-' && !hasWord("--short --verify", name) ||
			strings.Trim(name, plainChars+"~^") != ""
	})
}

func (r *reader) part(b *strings.Builder, out *word, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		appendLiteral(b, out, p.Value, quoted)
	case *syntax.SglQuoted:
		if !p.Dollar {
			b.WriteString(p.Value)
			return
		}
		text, ok := ansiC(p.Value)
		out.known = out.known && ok
		b.WriteString(text)
	case *syntax.DblQuoted:
		if p.Dollar { // $"..." is translated according to the locale
			out.known = false
		}
		for _, inner := range p.Parts {
			r.part(b, out, inner, true)
		}
	case *syntax.ParamExp:
		value := r.fixed[nameOf(p)]
		if p == out.folder {
			value = r.folders[nameOf(p)]
		}
		if value != "" {
			b.WriteString(value)
			return
		}
		out.known = false
		out.split = out.split || !quoted
		guess := r.param(p)
		out.gap = out.gap || guess == ""
		b.WriteString(guess)
	case *syntax.CmdSubst:
		out.known = false
		out.split = out.split || !quoted && !printsCommit(p)
		guess := r.echoed(p)
		out.gap = out.gap || guess == ""
		b.WriteString(guess)
	default:
		out.known, out.gap = false, true
	}
}

// appendLiteral appends a literal without its backslashes, and records whether the shell
// would expand globs in it.
func appendLiteral(b *strings.Builder, out *word, s string, quoted bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			next := s[i+1]
			if quoted && !strings.ContainsRune("$`\"\\\n", rune(next)) {
				b.WriteByte(c)
				continue
			}
			i++
			if next != '\n' {
				b.WriteByte(next)
			}
			continue
		case quoted:
		case c == '*' || c == '?' || c == '[':
			out.glob, out.known = true, false
		}
		b.WriteByte(c)
	}
}

// nameOf returns the variable of an expansion that is nothing but its value, which
// [analysis.unroll] accepts; else "".
func nameOf(p *syntax.ParamExp) string {
	if p.Param == nil || p.Repl != nil || p.Exp != nil {
		return ""
	}
	return p.Param.Value
}

// param guesses the value of a parameter: a value that the line has set, a
// default, or "".
func (r *reader) param(p *syntax.ParamExp) string {
	if p.Param == nil || p.Length || p.Excl || p.Index != nil {
		return ""
	}
	if v, ok := r.consts[p.Param.Value]; ok {
		return v
	}
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			return r.word(p.Exp.Word).text
		}
	}
	return ""
}

// echoed guesses the output of a command substitution that consists of a single
// echo or printf.
func (r *reader) echoed(p *syntax.CmdSubst) string {
	if len(p.Stmts) != 1 {
		return ""
	}
	call, ok := p.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	words := r.words(call.Args)
	if len(words) < 2 || words[0].text != "echo" && words[0].text != "printf" {
		return ""
	}
	return joinWords(words[1:])
}

// ansiC decodes the text inside $'...' (bash manual, "ANSI-C Quoting"). ok is false if
// it has an unknown escape.
func ansiC(s string) (text string, ok bool) {
	var b strings.Builder
	ok = true
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		n := ansiEscape(&b, s[i+1:])
		if n == 0 {
			ok = false
			b.WriteByte('\\')
		}
		i += 1 + n
	}
	return b.String(), ok
}

// ansiEscape decodes the escape that follows a backslash and returns its length, or 0
// if it is unknown.
func ansiEscape(b *strings.Builder, s string) int {
	if i := strings.IndexByte("abeEfnrtv\\'\"?", s[0]); i >= 0 {
		b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[i])
		return 1
	}
	switch s[0] {
	case 'x':
		return numeric(b, s, 1, 2, 16)
	case 'u':
		return numeric(b, s, 1, 4, 16)
	case 'U':
		return numeric(b, s, 1, 8, 16)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return numeric(b, s, 0, 3, 8)
	}
	return 0
}

func numeric(b *strings.Builder, s string, start, digits, base int) int {
	end := start
	for end < len(s) && end < start+digits {
		if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	n, err := strconv.ParseUint(s[start:end], base, 32)
	if err != nil {
		return 0
	}
	if n < 0x80 || base == 8 || digits == 2 {
		b.WriteByte(byte(n))
	} else {
		b.WriteString(string(utf8.AppendRune(nil, rune(n))))
	}
	return end
}

// isFile reports whether a word is the name of one file, as it is written. Shells replace a tilde.
func (w word) isFile() bool { return (w.known || w.expanded) && !strings.HasPrefix(w.text, "~") }
