package jsonx

import (
	"strings"
	"unicode/utf8"
)

// literal reads true, false or null.
func (p *Parser) literal(word string, k Kind) (*Value, *SyntaxError) {
	for i := 1; i < len(word); i++ {
		if p.pos+i >= len(p.src) {
			return nil, p.early()
		}
		if c := p.src[p.pos+i]; c != word[i] {
			return nil, p.invalid(c, "in literal "+word+" (expecting '"+word[i:i+1]+"')")
		}
	}
	p.pos += len(word)
	return p.scalar(k, word), nil
}

// string reads a string and returns its JSON text.
func (p *Parser) string() (string, *SyntaxError) {
	surrogates := false
	for i := p.pos + 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			token := p.src[p.pos : i+1]
			p.pos = i + 1
			if surrogates {
				token = mendSurrogates(token)
			}
			return token, nil
		case c == '\\':
			n, where := escapeLength(p.src[i:])
			if where != "" {
				if i+n >= len(p.src) {
					return "", p.early()
				}
				return "", p.invalid(p.src[i+n], where)
			}
			surrogates = surrogates || n == 6 && p.src[i+2]|0x20 == 'd'
			i += n - 1
		case c < ' ':
			return "", p.invalid(c, "in string literal")
		}
	}
	return "", p.early()
}

// escapeLength returns the length of the escape that s begins with. Where it is
// none, it returns the index of the byte that is wrong or missing, and what it
// stands in.
func escapeLength(s string) (n int, where string) {
	if len(s) < 2 {
		return 1, "in string escape code"
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(s) || strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
				return i, `in \u hexadecimal character escape`
			}
		}
		return 6, ""
	}
	return 1, "in string escape code"
}

// mendSurrogates rewrites a string that holds half a surrogate pair, which
// strict readers refuse together with the whole document.
func mendSurrogates(token string) string {
	s := unquote(token)
	if !strings.ContainsRune(s, utf8.RuneError) {
		return token
	}
	return Quote(s)
}

// number reads a number. What follows it is for the caller to refuse.
func (p *Parser) number() (*Value, *SyntaxError) {
	i := p.pos
	if p.src[i] == '-' {
		i++
	}
	var err *SyntaxError
	if i < len(p.src) && p.src[i] == '0' {
		i++
	} else if i, err = p.digits(i, "in numeric literal"); err != nil {
		return nil, err
	}
	if i < len(p.src) && p.src[i] == '.' {
		if i, err = p.digits(i+1, "after decimal point in numeric literal"); err != nil {
			return nil, err
		}
	}
	if i < len(p.src) && p.src[i]|0x20 == 'e' {
		if i++; i < len(p.src) && (p.src[i] == '+' || p.src[i] == '-') {
			i++
		}
		if i, err = p.digits(i, "in exponent of numeric literal"); err != nil {
			return nil, err
		}
	}
	token := p.src[p.pos:i]
	if p.Number != nil {
		if wrong := p.Number(token); wrong != "" {
			p.pos = i
			return nil, p.fail("%s", wrong)
		}
	}
	p.pos = i
	return p.scalar(Number, token), nil
}

// digits returns the index behind the digits at i, of which there has to be one.
func (p *Parser) digits(i int, where string) (int, *SyntaxError) {
	start := i
	for i < len(p.src) && p.src[i] >= '0' && p.src[i] <= '9' {
		i++
	}
	switch {
	case i > start:
		return i, nil
	case i >= len(p.src):
		return i, p.early()
	}
	return i, p.invalid(p.src[i], where)
}
