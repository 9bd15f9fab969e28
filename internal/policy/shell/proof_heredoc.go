package shell

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// hereStart reads << and the delimiter after it, or <<<.
func (p *proof) hereStart(i int) (int, error) {
	if p.plain > 0 {
		return 0, errors.New("a here-document inside an expansion")
	}
	n := p.nodes[i]
	delete(p.nodes, i)
	switch n.kind {
	case hereWord:
		if !strings.HasPrefix(p.src[i:], "<<<") {
			return 0, errDiffers
		}
		return i + 3, nil
	case hereDoc:
	default:
		return 0, errDiffers
	}
	i += 2
	if n.hdoc.Op == syntax.DashHdoc {
		i++
	}
	for i < len(p.src) && (p.src[i] == ' ' || p.src[i] == '\t') {
		i++
	}
	if i != int(n.hdoc.Word.Pos().Offset()) || len(n.hdoc.Word.Parts) != 1 {
		return 0, errors.New("a here-document with an unusual delimiter; use a plain word")
	}
	quote := i < len(p.src) && (p.src[i] == '\'' || p.src[i] == '"')
	var err error
	start := i
	if quote {
		i, err = p.special(i, false)
		start++
	} else {
		for i < len(p.src) && isNameByte(p.src[i]) {
			i++
		}
	}
	if err != nil {
		return 0, err
	}
	text := p.src[start:i]
	if quote {
		text = text[:len(text)-1]
	}
	atEnd := i == len(p.src) || strings.IndexByte(" \t\n;|&<>)", p.src[i]) >= 0
	if text == "" || !atEnd || strings.ContainsFunc(text,
		func(r rune) bool { return r >= 0x80 || !isNameByte(byte(r)) && r != '-' && r != '.' }) {
		return 0, errors.New("a here-document with an unusual delimiter; use a plain word")
	}
	return i, nil
}

// hereBodies reads the bodies of here-documents, the first of which begins at i,
// inside the construct that the byte closer ends.
func (p *proof) hereBodies(i int, bodies []*syntax.Redirect, closer byte) (int, error) {
	for n, r := range bodies {
		if n > 0 {
			i++ // the newline after the previous delimiter
		}
		delimiter, quoted := "", false
		switch part := r.Word.Parts[0].(type) {
		case *syntax.Lit:
			delimiter = part.Value
		default:
			quoted = true
			delimiter = p.src[r.Word.Pos().Offset()+1 : r.Word.End().Offset()-1]
		}
		start := i
		end, next := hereEnd(p.src, start, delimiter, r.Op == syntax.DashHdoc)
		if end >= 0 && closer != 0 && endsEarly(p.src[start:end], delimiter) {
			return 0, errors.New("a here-document with a line that ends it in some shells only")
		}
		if end < 0 || !quoted && strings.Contains(p.src[start:end], "\\\n") {
			return 0, errors.New("a here-document whose end is missing or may be read differently")
		}
		if r.Hdoc != nil && len(r.Hdoc.Parts) > 0 {
			// The parser treats the delimiter as part of the body.
			if got := int(r.Hdoc.End().Offset()); int(r.Hdoc.Pos().Offset()) != start || got != end && got != next {
				return 0, errDiffers
			}
		}
		for i < end && !quoted {
			c := p.src[i]
			if c != '$' && c != '`' && c != '\\' {
				i++
				continue
			}
			var err error
			if i, err = p.special(i, true); err != nil {
				return 0, err
			}
		}
		if i > end {
			return 0, errDiffers
		}
		i = next
	}
	return i, nil
}

// hereEnd finds the line that consists of the delimiter. end is the position where
// this line begins, or -1 if it is missing, and next is where it ends.
func hereEnd(src string, i int, delimiter string, tabs bool) (end, next int) {
	for i < len(src) {
		line, _, _ := strings.Cut(src[i:], "\n")
		text := line
		if tabs {
			text = strings.TrimLeft(text, "\t")
		}
		if text == delimiter {
			return i, i + len(line) // the newline ends the command
		}
		i += len(line) + 1
	}
	return -1, i
}

// endsEarly reports whether a line of a body begins with the delimiter. Inside a
// substitution, bash ends the body at such a line if the line also closes the
// substitution.
func endsEarly(body, delimiter string) bool {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(strings.TrimLeft(line, "\t"), delimiter) {
			return true
		}
	}
	return false
}
