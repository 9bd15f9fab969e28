package document

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Limits of a document.
const (
	maxDepth = 64      // nested lists and objects
	maxNodes = 100_000 // values, including those of each use of an alias
)

// parser turns bytes into values and collects the problems.
type parser struct {
	file     string
	isJSON   bool // JSON with comments, otherwise YAML
	nodes    int
	limit    int  // of nodes
	depth    int  // of nested lists and objects; 0 means maxDepth
	foreign  bool // another program's file: accept strings that settings must not contain
	merges   bool // accept merge keys and the tags of JSON's types
	overflow bool // limit or maxDepth was reported
	problems []Problem
	within   map[*jsonx.Value][]Problem // for each value, the problems in it and below it
}

// found records that the problems after the first n are in a value.
func (p *parser) found(n int, v *jsonx.Value) {
	if len(p.problems) == n {
		return
	}
	if p.within == nil {
		p.within = map[*jsonx.Value][]Problem{}
	}
	p.within[v] = p.problems[n:len(p.problems):len(p.problems)]
}

// IsJSON reports whether a file is JSON with comments rather than YAML, according
// to its name.
func IsJSON(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".json" || ext == ".jsonc" || ext == ".json5"
}

func (p *parser) fail(at jsonx.Pos, message, hint string) {
	line, col := at.Place()
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Col: col, Message: Visible(message), Hint: hint})
}

// Visible escapes characters that a terminal would not show literally. It is for
// messages, which contain untrusted names.
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
		_, size := utf8.DecodeRuneInString(s[i:])
		quoted := strconv.QuoteToASCII(s[i : i+size])
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Printable returns an untrusted name on one line, escaped like a Go string.
func Printable(name string) string { return strings.Trim(strconv.Quote(name), `"`) }

// room counts a value and reports whether the limits allow it.
func (p *parser) room(at jsonx.Pos, depth int) bool {
	p.nodes++
	switch {
	case p.overflow:
	case depth > cmp.Or(p.depth, maxDepth):
		p.overflow = true
		p.fail(at, fmt.Sprintf("nested deeper than %d levels", cmp.Or(p.depth, maxDepth)), "")
	case p.nodes > p.limit:
		p.overflow = true
		p.fail(at, fmt.Sprintf("more than %d values, including aliases", p.limit), "")
	}
	return !p.overflow
}

func (p *parser) names(members []jsonx.Member) []jsonx.Member {
	seen := make(map[string]int32, len(members))
	out := members[:0]
	for _, f := range members {
		if first, ok := seen[f.Name]; ok {
			p.fail(f.Pos, fmt.Sprintf("duplicate key %q, first on line %d", f.Name, first), "keep one of them")
			continue
		}
		seen[f.Name] = f.Line
		out = append(out, f)
	}
	return out
}

// text rejects strings that cannot be an argument or a variable of a program.
func (p *parser) text(at jsonx.Pos, s string) {
	if !p.foreign && strings.ContainsRune(s, 0) {
		p.fail(at, "a string contains a NUL character", "")
	}
}

func (p *parser) string(n *jsonx.Value, s string) {
	n.Kind, n.Token = jsonx.String, jsonx.Quote(s)
	p.text(n.Pos, s)
}

// nullAt returns null, with which every value is initialized.
func nullAt(at jsonx.Pos) *jsonx.Value {
	n := jsonx.NewNull()
	n.Pos = at
	return n
}

// number sets the value of a number, and rejects numbers that JSON does not allow.
func (p *parser) number(n *jsonx.Value, literal string) {
	n.Kind, n.Token = jsonx.Number, literal
	if !IsNumber(literal) {
		n.Token = jsonx.Quote(literal) // so that the rest remains valid JSON
		p.fail(n.Pos, fmt.Sprintf("%s is not a decimal number", literal),
			"write it in decimal, or quote it if it is text")
	}
}

// IsNumber reports whether s is a number as JSON writes it.
func IsNumber(s string) bool {
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	return s != "" && (s[0] == '-' || isDigit(s[0])) && isDigit(s[len(s)-1]) && json.Valid([]byte(s))
}

// badUTF8 returns the line of the first invalid UTF-8 byte.
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

// TypeName returns the name of a value's type, for messages.
func TypeName(n *jsonx.Value) string {
	switch n.Kind {
	case jsonx.True, jsonx.False:
		return "boolean"
	case jsonx.Array:
		return "list"
	}
	name := n.Kind.String() // with its article
	return name[strings.IndexByte(name, ' ')+1:]
}
