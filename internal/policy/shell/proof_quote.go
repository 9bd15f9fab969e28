package shell

import (
	"errors"
	"strings"
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
