package shell

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits for the expansion of all braces in a line, including nested scripts,
// because a short line can expand to more text than fits into memory.
const (
	maxExpanded      = 10_000
	maxExpandedBytes = 1 << 18
	// maxBraces limits the opening braces in a word, because searching them takes
	// quadratic time.
	maxBraces = 100
)

var (
	errManyBraces = errors.New("braces that expand to too many words")
	errJoined     = errors.New("braces that may join a dollar sign or a variable to a name")
	errMixedRange = errors.New("a range of letters that includes other characters")
)

// expander expands braces as Bash does: in the text of a word, before all other
// expansions. Other shells do the same or do not expand braces. A nil expander
// expands nothing.
type expander struct {
	src  string
	room *expandable // shared by the scripts of a line
	done map[*syntax.Word]expansion
}

// expandable is how much braces may still expand to.
type expandable struct{ words, bytes int }

// expansion is what a word expands to.
type expansion struct {
	words []*syntax.Word // empty for {,}
	err   error          // the reason why the words are not known
}

// expand expands a word for which mayExpand returned true.
func (e *expander) expand(w *syntax.Word) expansion {
	if x, ok := e.done[w]; ok {
		return x
	}
	var x expansion
	var texts [][]atom
	texts, x.err = e.texts(atomsOf(w.Parts), 0)
	for _, text := range texts {
		if len(text) == 0 { // an unquoted empty word is dropped
			continue
		}
		parts, err := partsOf(text)
		if err != nil {
			x = expansion{err: err}
			break
		}
		x.words = append(x.words, &syntax.Word{Parts: parts})
	}
	e.done[w] = x
	return x
}

// mayExpand reports whether a word has braces that a shell may expand.
func mayExpand(w *syntax.Word) bool {
	if w == nil || !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return ok && strings.Contains(lit.Value, "{")
	}) {
		return false
	}
	open, _, err := braces(atomsOf(w.Parts))
	return open >= 0 || err != nil
}

// atom is a part of a word that braces do not divide: an unquoted character, a
// backslash and the character after it, a quoted string or an expansion.
type atom struct {
	text string
	part syntax.WordPart // nil for text
}

func (a atom) is(c byte) bool { return len(a.text) == 1 && a.text[0] == c }

func atomsOf(parts []syntax.WordPart) []atom {
	var out []atom
	for _, p := range parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			out = append(out, atom{part: p})
			continue
		}
		for s := lit.Value; s != ""; {
			n := 1
			if s[0] == '\\' {
				n = min(2, len(s))
			}
			out = append(out, atom{text: s[:n]})
			s = s[n:]
		}
	}
	return out
}

// partsOf is the inverse of atomsOf. It fails if atoms that brace expansion has
// joined could be read as another expansion.
func partsOf(atoms []atom) ([]syntax.WordPart, error) {
	var out []syntax.WordPart
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			out = append(out, &syntax.Lit{Value: text.String()})
			text.Reset()
		}
	}
	for i, a := range atoms {
		switch {
		case a.is('$'), i > 0 && endsInName(atoms[i-1].part) && a.part == nil && isNameByte(a.text[0]):
			return nil, errJoined
		case a.part != nil:
			flush()
			out = append(out, a.part)
		default:
			text.WriteString(a.text)
		}
	}
	flush()
	return out, nil
}

// endsInName reports whether letters after the part would be read as part of its
// variable name.
func endsInName(part syntax.WordPart) bool {
	p, ok := part.(*syntax.ParamExp)
	return ok && p.Short && isNameByte(p.Param.Value[0]) && (p.Param.Value[0] < '0' || p.Param.Value[0] > '9')
}

// braces returns the positions of the first pair of braces that a shell may
// expand. open is -1 if there is none.
func braces(atoms []atom) (open, end int, err error) {
	tried := 0
	for i, a := range atoms {
		if !a.is('{') || i == 0 && len(atoms) > 1 && atoms[1].is('}') {
			continue
		}
		if tried++; tried > maxBraces {
			return 0, 0, errManyBraces
		}
		if end := closingBrace(atoms, i+1); end >= 0 {
			return i, end, nil
		}
	}
	return -1, -1, nil
}

// closingBrace returns the position of the brace that closes the content beginning at
// i, or -1 if the content has neither a comma nor "..". The ".." need not form a
// valid range.
func closingBrace(atoms []atom, i int) int {
	depth, divided := 0, false
	for ; i < len(atoms); i++ {
		switch a := atoms[i]; {
		case a.is('{'):
			depth++
		case a.is('}') && depth > 0:
			depth--
		case depth > 0:
		case a.is('}') && divided:
			return i
		case a.is(','), i+2 < len(atoms) && a.is('.') && atoms[i+1].is('.') && !atoms[i+2].is('}'):
			divided = true
		}
	}
	return -1
}

// texts returns all expansions of a text.
func (e *expander) texts(atoms []atom, depth int) ([][]atom, error) {
	open, end, err := braces(atoms)
	if open < 0 {
		return [][]atom{atoms}, nil
	}
	if err != nil || depth > maxNesting {
		return nil, errManyBraces
	}
	middle, err := e.content(atoms[open+1:end], depth+1)
	if err != nil {
		return nil, err
	}
	if middle == nil { // the braces are not expanded
		middle = [][]atom{atoms[open : end+1]}
	}
	rest, err := e.texts(atoms[end+1:], depth+1)
	if err != nil {
		return nil, err
	}
	var out [][]atom
	for _, m := range middle {
		for _, r := range rest {
			text := slices.Concat(atoms[:open], m, r)
			if e.room.words--; e.room.words < 0 {
				return nil, errManyBraces
			}
			if e.room.bytes -= len(text); e.room.bytes < 0 {
				return nil, errManyBraces
			}
			out = append(out, text)
		}
	}
	return out, nil
}

// content returns the expansions of the text between a pair of braces, or nil if
// it is neither a list nor a range.
func (e *expander) content(atoms []atom, depth int) ([][]atom, error) {
	if !slices.ContainsFunc(atoms, e.hasComma) {
		return e.values(atoms)
	}
	var out [][]atom
	nested, start := 0, 0
	for i := 0; i <= len(atoms); i++ {
		switch {
		case i == len(atoms), nested == 0 && atoms[i].is(','):
			texts, err := e.texts(atoms[start:i], depth)
			if err != nil {
				return nil, err
			}
			out, start = append(out, texts...), i+1
		case atoms[i].is('{'):
			nested++
		case atoms[i].is('}') && nested > 0:
			nested--
		}
	}
	return out, nil
}

// hasComma reports whether an atom contains a comma. To distinguish lists from
// ranges, Bash also looks for commas inside quotes and expansions.
func (e *expander) hasComma(a atom) bool {
	if a.part == nil {
		return a.is(',')
	}
	return strings.Contains(e.src[a.part.Pos().Offset():a.part.End().Offset()], ",")
}

// values returns the values of a range such as 1..3, 01..10, a..e or 9..1..2, or
// nil if the text is not a range.
func (e *expander) values(atoms []atom) ([][]atom, error) {
	var b strings.Builder
	for _, a := range atoms {
		b.WriteString(a.text)
	}
	ends := strings.Split(b.String(), "..")
	if slices.ContainsFunc(atoms, func(a atom) bool { return a.part != nil }) || len(ends) < 2 || len(ends) > 3 {
		return nil, nil
	}
	step := int64(1)
	if len(ends) == 3 {
		n, err := strconv.ParseInt(ends[2], 10, 32)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, errManyBraces
		case err != nil:
			return nil, nil
		}
		step = max(n, -n, 1)
	}
	format, width := "%0*d", 0
	first, err1 := strconv.ParseInt(ends[0], 10, 32)
	last, err2 := strconv.ParseInt(ends[1], 10, 32)
	switch {
	case isLetter(ends[0]) && isLetter(ends[1]):
		if ends[0][0] >= 'a' != (ends[1][0] >= 'a') {
			return nil, errMixedRange
		}
		format, first, last = "%*c", int64(ends[0][0]), int64(ends[1][0])
	case errors.Is(err1, strconv.ErrRange), errors.Is(err2, strconv.ErrRange):
		return nil, errManyBraces
	case err1 != nil || err2 != nil:
		return nil, nil
	case isPadded(ends[0]) || isPadded(ends[1]):
		width = max(len(ends[0]), len(ends[1]))
	}
	count := (max(first, last) - min(first, last)) / step
	if int(count) >= e.room.words {
		return nil, errManyBraces
	}
	if first > last {
		step = -step
	}
	var out [][]atom
	for i := range count + 1 {
		var text []atom
		for _, c := range fmt.Sprintf(format, width, first+i*step) {
			text = append(text, atom{text: string(c)})
		}
		out = append(out, text)
	}
	return out, nil
}

// isLetter reports whether an endpoint of a range is a letter.
func isLetter(end string) bool {
	return len(end) == 1 && isNameByte(end[0]) && end[0] > '9' && end[0] != '_'
}

// isPadded reports whether an endpoint of a range has leading zeros.
func isPadded(end string) bool {
	digits := strings.TrimPrefix(end, "-")
	return len(digits) > 1 && digits[0] == '0'
}
