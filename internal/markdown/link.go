package markdown

import (
	"strings"

	"github.com/toolreg/toolreg/internal/terminal"
)

// maxAddress bounds the address of a link, in bytes.
const maxAddress = 4096

// link reads [text](address "title") at a bracket, or ![text](address). The
// address is always shown: a text may claim another one.
func (p *inlineParser) link(at int) {
	end, ok := p.pairs[at]
	if !ok || end+1 >= len(p.text) || p.text[end+1] != '(' {
		p.take(at + 1 - p.at)
		return
	}
	address, n := addressOf(p.text[end+2:])
	if n == 0 || address == "" {
		p.take(at + 1 - p.at)
		return
	}
	label := p.text[at+1 : end]
	if label == "" && at > p.at {
		label = "image"
	}
	p.at = end + 2 + n
	if label == "" || label == address {
		p.add(address, terminal.Blue)
		return
	}
	for _, s := range inlineWithin(label, p.color, p.depth+1) {
		p.add(s.Text, s.Style|terminal.Underline)
	}
	p.add(" ("+address+")", terminal.Blue)
}

// addressOf reads an address with an optional title up to the closing bracket,
// and returns how long that is; 0 where there is none.
func addressOf(text string) (address string, n int) {
	if len(text) > maxAddress {
		text = text[:maxAddress]
	}
	start := indentOf(text)
	end := start
	if strings.HasPrefix(text[start:], "<") {
		close := strings.IndexAny(text[start:], ">\n")
		if close < 0 || text[start+close] != '>' {
			return "", 0
		}
		address, end = text[start+1:start+close], start+close+1
	} else {
		end = start + bareAddress(text[start:])
		address = text[start:end]
	}
	rest := strings.TrimLeft(text[end:], " ")
	if rest != "" && strings.ContainsAny(rest[:1], `"'`) && rest != text[end:] {
		close := strings.IndexByte(rest[1:], rest[0])
		if close < 0 {
			return "", 0
		}
		address += " " + rest[:close+2]
		rest = strings.TrimLeft(rest[close+2:], " ")
	}
	if !strings.HasPrefix(rest, ")") {
		return "", 0
	}
	return unescaped(address), len(text) - len(rest) + 1
}

// bareAddress returns the length of an address without blanks, whose round
// brackets are in pairs, at most eight deep.
func bareAddress(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ' ', '\n':
			return i
		case '(':
			if depth++; depth > 8 {
				return 0
			}
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return 0
}

func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && punctuation(text[i+1]) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
