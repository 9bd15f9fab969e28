package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a document.
const (
	maxDepth = 64      // nested lists and objects
	maxNodes = 100_000 // values, aliases counted each time they are used
)

// parser turns bytes into nodes and collects the problems.
type parser struct {
	file     string
	isJSON   bool // JSON with comments, else YAML
	nodes    int
	limit    int  // of nodes
	foreign  bool // another program's file: oddities in the rest of it do not matter
	overflow bool // limit or maxDepth was reported
	problems []Problem
}

// document parses a file. Every failure has a position.
func (p *parser) document(data []byte) (*Document, []Problem) {
	root := p.root(bytes.TrimPrefix(data, []byte("\ufeff")))
	problems := slices.Clone(p.problems) // copy: the values share the slice
	SortByPlace(problems)
	if root == nil {
		return nil, problems
	}
	return &Document{File: p.file, Root: root}, problems
}

// since returns the problems after the first n; nil if there are none.
func (p *parser) since(n int) []Problem {
	if len(p.problems) == n {
		return nil
	}
	return p.problems[n:len(p.problems):len(p.problems)]
}

func (p *parser) root(data []byte) *Node {
	if line, ok := badUTF8(data); ok {
		p.fail(line, 1, "the file is not valid UTF-8", "save it as UTF-8")
		return nil
	}
	read := p.yaml
	if p.isJSON {
		read = p.json
	}
	root := read(data)
	switch {
	case root == nil || p.overflow:
		return nil
	case root.Kind == Null:
		return &Node{Kind: Object, Line: 1, Col: 1}
	case root.Kind != Object:
		p.fail(root.Line, root.Col, "expected an object, got "+root.Kind.String(), "")
		return nil
	}
	return root
}

// IsJSON reports whether the name of a file means JSON with comments rather
// than YAML.
func IsJSON(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".json" || ext == ".jsonc"
}

func (p *parser) fail(line, col int, message, hint string) {
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Col: col, Message: Visible(message), Hint: hint})
}

// Visible escapes characters that a terminal would not show literally: messages
// contain names that anybody may have chosen.
func Visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if strconv.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteToASCII(s[i : i+runeSize(s[i:])])
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func runeSize(s string) int {
	_, size := utf8.DecodeRuneInString(s)
	return size
}

// Printable shows a name that anybody may have chosen on one line, escaped like
// a Go string.
func Printable(name string) string { return strings.Trim(strconv.Quote(name), `"`) }

// room counts a value and reports whether the limits allow it.
func (p *parser) room(line, col, depth int) bool {
	p.nodes++
	switch {
	case p.overflow:
	case depth > maxDepth:
		p.overflow = true
		p.fail(line, col, fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
	case p.nodes > p.limit:
		p.overflow = true
		p.fail(line, col, fmt.Sprintf("more than %d values, including aliases", p.limit), "")
	}
	return !p.overflow
}

// names checks the names of an object's members.
func (p *parser) names(fields []Field) []Field {
	seen := make(map[string]int, len(fields))
	out := fields[:0]
	for _, f := range fields {
		if first, ok := seen[f.Name]; ok {
			p.fail(f.Line, f.Col, fmt.Sprintf("duplicate key %q, first on line %d", f.Name, first), "keep one of them")
			continue
		}
		seen[f.Name] = f.Line
		out = append(out, f)
	}
	return out
}

// text rejects strings that cannot be an argument or a variable of a program.
func (p *parser) text(line, col int, s string) {
	if !p.foreign && strings.ContainsRune(s, 0) {
		p.fail(line, col, "a string contains a NUL character", "")
	}
}

// number rejects what JSON would not read as the same number.
func (p *parser) number(line, col int, literal string) {
	if !IsNumber(literal) {
		p.fail(line, col, fmt.Sprintf("%s is not a decimal number", literal), "write it in decimal, or quote it if it is text")
	}
}

// IsNumber reports whether s is a number as JSON writes it.
func IsNumber(s string) bool {
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	return s != "" && (s[0] == '-' || isDigit(s[0])) && isDigit(s[len(s)-1]) && json.Valid([]byte(s))
}

// badUTF8 returns the line of the first byte that is not UTF-8.
func badUTF8(data []byte) (line int, bad bool) {
	if utf8.Valid(data) {
		return 0, false
	}
	at := 0
	for r, size := utf8.DecodeRune(data); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(data[at:]) {
		at += size
	}
	return 1 + bytes.Count(data[:at], []byte("\n")), true
}
