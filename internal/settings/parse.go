package settings

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a settings file.
const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 64      // nested lists and objects
	maxNodes = 100_000 // values, aliases counted as often as they are used
)

// document is a parsed settings file.
type document struct {
	root     *node // an object; nil when the file could not be parsed
	problems []Problem
}

// parse reads a settings file: JSON with comments when its name ends in .json,
// YAML else. It never fails as a whole without saying where.
func parse(name string, data []byte) document {
	return (&parser{file: name, limit: maxNodes}).document(name, data)
}

func (p *parser) document(name string, data []byte) document {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if line, ok := badUTF8(data); ok {
		p.fail(line, 1, "the file is not valid UTF-8", "save it as UTF-8")
		return document{problems: p.problems}
	}
	var root *node
	if isJSONFile(name) {
		root = p.json(data)
	} else {
		root = p.yaml(data)
	}
	if p.overflow {
		root = nil
	}
	if root != nil && root.kind == kindNull {
		root = &node{kind: kindObject, line: 1, col: 1}
	}
	if root != nil && root.kind != kindObject {
		p.fail(root.line, root.col, "expected an object with settings, got "+root.kind.String(), "")
		root = nil
	}
	return document{root: root, problems: p.problems}
}

// isJSONFile tells JSON with comments from YAML.
func isJSONFile(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".json" || ext == ".jsonc"
}

// parser turns bytes into nodes and collects what is wrong with them.
type parser struct {
	file     string
	nodes    int
	limit    int  // of nodes
	foreign  bool // another program's file: what is odd in the rest of it is its own business
	overflow bool // maxNodes or maxDepth was reported
	problems []Problem
}

func (p *parser) fail(line, col int, message, hint string) {
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Col: col, Message: visible(message), Hint: hint})
}

// visible escapes what a terminal would not show as it is: messages hold names
// that anybody may have chosen.
func visible(s string) string {
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

// room counts a value and reports whether it is within the limits.
func (p *parser) room(line, col, depth int) bool {
	p.nodes++
	switch {
	case p.overflow:
	case depth > maxDepth:
		p.overflow = true
		p.fail(line, col, fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
	case p.nodes > p.limit:
		p.overflow = true
		p.fail(line, col, fmt.Sprintf("more than %d values, aliases counted", p.limit), "")
	}
	return !p.overflow
}

// names checks the names of an object's members.
func (p *parser) names(fields []field) []field {
	seen := make(map[string]int, len(fields))
	out := fields[:0]
	for _, f := range fields {
		if first, ok := seen[f.name]; ok {
			p.fail(f.line, f.col, fmt.Sprintf("duplicate key %q, first on line %d", f.name, first), "keep one of them")
			continue
		}
		seen[f.name] = f.line
		out = append(out, f)
	}
	return out
}

// text refuses what no program can take in an argument or a variable.
func (p *parser) text(line, col int, s string) {
	if !p.foreign && strings.ContainsRune(s, 0) {
		p.fail(line, col, "a string holds a NUL character", "")
	}
}

// number refuses what JSON would not read as the same number.
func (p *parser) number(line, col int, literal string) {
	if !isJSONNumber(literal) {
		p.fail(line, col, fmt.Sprintf("%s is not a decimal number", literal), "write it in decimal, or quote it if it is text")
	}
}

func isJSONNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole := digits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digits(s)
		return n > 0 && n == len(s)
	}
	return s == ""
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// badUTF8 returns the line of the first byte that is not UTF-8.
func badUTF8(data []byte) (int, bool) {
	if utf8.Valid(data) {
		return 0, false
	}
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line, true
}
