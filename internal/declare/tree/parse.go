package tree

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errSyntax = errors.New("not valid JSON")

// parser reads JSON texts into trees. It reuses its memory: a tree is good
// until the next parse.
type Parser struct {
	src      string
	pos      int
	maxDepth int

	nodes   []Node
	members []Member
	items   []*Node
	open    []Member // members of the objects being read
	waiting []*Node  // items of the arrays being read

	// duplicate is set when an object held a key twice; the last value counts,
	// in the place of the first, as in most readers of JSON.
	Duplicate bool
}

// parse reads one JSON value with nothing behind it. What no strict reader of
// JSON would take, a bad byte or half a surrogate pair, becomes U+FFFD.
func (p *Parser) Parse(data []byte, maxDepth int) (*Node, error) {
	p.src, p.pos, p.maxDepth, p.Duplicate = string(data), 0, maxDepth, false
	if !utf8.ValidString(p.src) {
		p.src = strings.ToValidUTF8(p.src, "\uFFFD")
	}
	p.nodes, p.members, p.items = p.nodes[:0], p.members[:0], p.items[:0]
	p.open, p.waiting = p.open[:0], p.waiting[:0]
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(p.src) {
		return nil, p.syntax("text behind the value")
	}
	return n, nil
}

func (p *Parser) syntax(what string) error {
	return fmt.Errorf("%w: %s at byte %d", errSyntax, what, p.pos)
}

func (p *Parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// skip steps over one byte if it is c.
func (p *Parser) skip(c byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *Parser) value(depth int) (*Node, error) {
	p.space()
	if p.pos >= len(p.src) {
		return nil, p.syntax("unexpected end")
	}
	switch c := p.src[p.pos]; c {
	case '{', '[':
		if depth >= p.maxDepth {
			return nil, fmt.Errorf("nested deeper than %d", p.maxDepth)
		}
		p.pos++
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case '"':
		token, err := p.str()
		return p.scalar(String, token), err
	case 't':
		return p.literal("true", True)
	case 'f':
		return p.literal("false", False)
	case 'n':
		return p.literal("null", Null)
	}
	return p.number()
}

// alloc returns a node of the parser's own memory. Full memory is left to the
// trees that point into it and a larger piece taken.
func (p *Parser) alloc(n Node) *Node {
	if len(p.nodes) == cap(p.nodes) {
		p.nodes = make([]Node, 0, max(64, 2*cap(p.nodes)))
	}
	p.nodes = append(p.nodes, n)
	return &p.nodes[len(p.nodes)-1]
}

func (p *Parser) scalar(k kind, token string) *Node { return p.alloc(Node{Kind: k, Token: token}) }

func (p *Parser) literal(word string, k kind) (*Node, error) {
	if !strings.HasPrefix(p.src[p.pos:], word) {
		return nil, p.syntax("unexpected text")
	}
	p.pos += len(word)
	return p.scalar(k, word), nil
}

func (p *Parser) object(depth int) (*Node, error) {
	base := len(p.open)
	if p.space(); p.skip('}') {
		return p.alloc(Node{Kind: Object}), nil
	}
	var seen map[string]int // only for objects too large to scan
	for {
		p.space()
		if p.pos >= len(p.src) || p.src[p.pos] != '"' {
			return nil, p.syntax("expected a key")
		}
		token, err := p.str()
		if err != nil {
			return nil, err
		}
		if p.space(); !p.skip(':') {
			return nil, p.syntax("expected a colon")
		}
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		seen = p.keep(base, seen, Member{Name: unquote(token), Token: token, Value: v})
		p.space()
		if p.skip('}') {
			break
		}
		if !p.skip(',') {
			return nil, p.syntax("expected a comma or the end of an object")
		}
	}
	n := p.alloc(Node{Kind: Object, Members: carve(&p.members, p.open[base:])})
	p.open = p.open[:base]
	return n, nil
}

// maxScan is the number of members up to which looking through them beats a
// map.
const maxScan = 32

// keep adds m to the object whose members start at base, or replaces the value
// of the same key.
func (p *Parser) keep(base int, seen map[string]int, m Member) map[string]int {
	all := p.open[base:]
	if seen == nil && len(all) == maxScan {
		seen = make(map[string]int, 4*maxScan)
		for i := range all {
			seen[all[i].Name] = i
		}
	}
	at, found := seen[m.Name]
	if seen == nil {
		at = slices.IndexFunc(all, func(o Member) bool { return o.Name == m.Name })
		found = at >= 0
	}
	if found {
		p.Duplicate = true
		all[at].Value = m.Value
		return seen
	}
	if seen != nil {
		seen[m.Name] = len(all)
	}
	p.open = append(p.open, m)
	return seen
}

func (p *Parser) array(depth int) (*Node, error) {
	base := len(p.waiting)
	if p.space(); p.skip(']') {
		return p.alloc(Node{Kind: Array}), nil
	}
	for {
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		p.waiting = append(p.waiting, v)
		p.space()
		if p.skip(']') {
			break
		}
		if !p.skip(',') {
			return nil, p.syntax("expected a comma or the end of an array")
		}
	}
	n := p.alloc(Node{Kind: Array, Items: carve(&p.items, p.waiting[base:])})
	p.waiting = p.waiting[:base]
	return n, nil
}

// carve copies part to the end of memory and returns it without room behind,
// so that an append to it moves away from its neighbours.
func carve[T any](memory *[]T, part []T) []T {
	if cap(*memory)-len(*memory) < len(part) {
		*memory = make([]T, 0, max(64, 2*cap(*memory), len(part)))
	}
	start := len(*memory)
	*memory = append(*memory, part...)
	return (*memory)[start:len(*memory):len(*memory)]
}

// str reads a string and returns its JSON text.
func (p *Parser) str() (string, error) {
	start, surrogates := p.pos, false
	for i := start + 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			p.pos = i + 1
			token := p.src[start:p.pos]
			if surrogates {
				token = mendSurrogates(token)
			}
			return token, nil
		case c == '\\':
			n := escapeLength(p.src[i:])
			if n == 0 {
				p.pos = i
				return "", p.syntax("bad escape in a string")
			}
			surrogates = surrogates || n == 6 && p.src[i+2]|0x20 == 'd'
			i += n - 1
		case c < 0x20:
			p.pos = i
			return "", p.syntax("control character in a string")
		}
	}
	p.pos = len(p.src)
	return "", p.syntax("unexpected end of a string")
}

// escapeLength returns the length of the escape that s begins with, 0 if it is
// none.
func escapeLength(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(s) >= 6 && strings.Trim(s[2:6], "0123456789abcdefABCDEF") == "" {
			return 6
		}
	}
	return 0
}

// mendSurrogates rewrites a string that holds half a surrogate pair, which
// strict readers refuse together with the whole document.
func mendSurrogates(token string) string {
	s := unquote(token)
	if !strings.ContainsRune(s, utf8.RuneError) {
		return token
	}
	return string(AppendString(nil, s))
}

func (p *Parser) number() (*Node, error) {
	start := p.pos
	p.skip('-')
	if !p.skip('0') && !p.digits() {
		p.pos = start
		return nil, p.syntax("unexpected text")
	}
	exponent := false
	if p.skip('.') && !p.digits() {
		return nil, p.syntax("bad number")
	}
	if p.skip('e') || p.skip('E') {
		exponent = true
		if !p.skip('+') {
			p.skip('-')
		}
		if !p.digits() {
			return nil, p.syntax("bad number")
		}
	}
	token := p.src[start:p.pos]
	if exponent || len(token) > 300 {
		if _, err := strconv.ParseFloat(token, 64); err != nil {
			return nil, fmt.Errorf("number %.40s is out of range", token)
		}
	}
	return p.scalar(Number, token), nil
}

func (p *Parser) digits() bool {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}
