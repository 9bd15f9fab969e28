package shell

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// special reads the construct that begins with a quote, dollar sign, backquote or
// backslash.
func (p *proof) special(i int, quoted bool) (int, error) {
	c := p.src[i]
	switch {
	case c == '\\' && i+1 == len(p.src):
		return 0, errors.New("a backslash at the end")
	case c == '\\' && p.src[i+1] == '\n':
		return 0, errors.New(
			"a line that is continued within a word; put blanks before the backslash and on the next line")
	case p.plain > 0 && c != '$':
		return 0, errors.New("a quote or backslash inside an expansion")
	case c == '\\':
		return i + 2, nil
	case c == '$':
		return p.dollar(i, quoted)
	case c == '`':
		p.plain++
		defer func() { p.plain-- }()
		return p.enclosed(i, i+1, backquoted, '`')
	case c == '\'':
		return p.quote(i, i+1, single)
	}
	return p.quote(i, i+1, double)
}

// quote reads quoted text; i is the position after the opening quote.
func (p *proof) quote(start, i int, k kind) (int, error) {
	closer := byte('\'')
	if k == double || k == localeQuoted {
		closer = '"'
	}
	for i < len(p.src) {
		c := p.src[i]
		switch {
		case c == '\n' && p.bodies > 0:
			return 0, errors.New("a newline between a here-document and its body")
		case c == closer:
			if end, ok := p.take(start, k); !ok || end != i+1 {
				return 0, errDiffers
			}
			return i + 1, nil
		case k == ansiQuoted && c == '\\':
			i += 2
			continue
		case closer == '"' && (c == '$' || c == '`' || c == '\\'):
			var err error
			if i, err = p.special(i, true); err != nil {
				return 0, err
			}
			continue
		}
		i++
	}
	return 0, errDiffers
}

// dollar reads the construct that begins with a dollar sign.
func (p *proof) dollar(i int, quoted bool) (int, error) {
	next := byte(0)
	if i+1 < len(p.src) {
		next = p.src[i+1]
	}
	switch {
	case next == '(' && strings.HasPrefix(p.src[i:], "$(("):
		return p.arithmetic(i, i+3, arithmetic)
	case next == '(':
		return p.enclosed(i, i+2, substitution, ')')
	case next == '{':
		return p.parameter(i)
	case next == '[':
		return 0, errors.New("$[ is arithmetic in some shells only")
	case !quoted && (next == '\'' || next == '"') && (p.posix || p.plain > 0):
		return 0, errors.New("$' and $\" mean different things to different shells")
	case !quoted && next == '\'':
		return p.quote(i, i+2, ansiQuoted)
	case !quoted && next == '"':
		return p.quote(i, i+2, localeQuoted)
	}
	end := i + 1
	switch {
	case next == '$' && i+2 < len(p.src) &&
		strings.IndexByte("{([$'`\"", p.src[i+2]) >= 0 && !(quoted && p.src[i+2] == '"'):
		return 0, errors.New("$$ followed by text that bash may read as an expansion")
	case isNameByte(next) && (next < '0' || next > '9'):
		for end < len(p.src) && isNameByte(p.src[end]) {
			end++
		}
	case next != 0 && strings.IndexByte("0123456789@*#?$!-", next) >= 0:
		end++
	default:
		return end, nil // a literal dollar sign
	}
	if nodeEnd, ok := p.take(i, parameter); !ok || nodeEnd != end {
		return 0, errDiffers
	}
	return end, nil
}

// enclosed reads a substitution; i is the position after the opening bytes.
func (p *proof) enclosed(start, i int, k kind, closer byte) (int, error) {
	end, ok := p.take(start, k)
	if !ok {
		return 0, errDiffers
	}
	i, err := p.code(i, closer)
	if err != nil {
		return 0, err
	}
	if i+1 != end {
		return 0, errDiffers
	}
	return end, nil
}

// parameter reads ${...}: a name, and an operand whose bytes have the same meaning
// in all shells.
func (p *proof) parameter(start int) (int, error) {
	i := start + 2
	if i >= len(p.src) || !isNameByte(p.src[i]) && strings.IndexByte("#!@*?-", p.src[i]) < 0 {
		return 0, errDiffers
	}
	end, ok := p.take(start, parameter)
	if !ok {
		return 0, errDiffers
	}
	i, err := p.operand(i, "_-./:,+@%=#*?[]^~! ", func(i int) bool { return p.src[i] == '}' })
	if err != nil {
		return 0, err
	}
	if i+1 != end {
		return 0, errDiffers
	}
	return end, nil
}

// arithmetic reads $((...)), ((...)) or the head of a for loop.
func (p *proof) arithmetic(start, i int, k kind) (int, error) {
	end, ok := p.take(start, k)
	if !ok {
		return 0, errDiffers
	}
	allowed := "_ +*/%<>=!&|^~?:,()-"
	if k == loopHead {
		allowed += ";"
	}
	depth, inside := 0, i
	i, err := p.operand(i, allowed, func(i int) bool {
		switch p.src[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth < 0
	})
	if err != nil {
		return 0, err
	}
	if i+2 != end || !strings.HasPrefix(p.src[i:], "))") || strings.Contains(p.src[inside:i], "<<") {
		return 0, errDiffers
	}
	return end, nil
}

// operand reads letters, digits, the allowed bytes and unquoted expansions, up to
// the position for which done returns true.
func (p *proof) operand(i int, allowed string, done func(int) bool) (int, error) {
	p.plain++
	defer func() { p.plain-- }()
	for i < len(p.src) {
		c := p.src[i]
		switch {
		case done(i):
			return i, nil
		case c == '$':
			var err error
			if i, err = p.dollar(i, false); err != nil {
				return 0, err
			}
		case isNameByte(c) || strings.IndexByte(allowed, c) >= 0:
			i++
		default:
			return 0, errors.New("more than plain text inside an expansion")
		}
	}
	return 0, errDiffers
}

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
		delimiter := r.Word.Lit()
		quoted := delimiter == ""
		if quoted {
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
