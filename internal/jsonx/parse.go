package jsonx

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/text"
)

// Options determines which JSON is accepted. The zero value accepts the same JSON as
// encoding/json.
type Options struct {
	// Depth is the maximum nesting of objects and arrays; 0 means 10,000.
	Depth int
	// Values is the maximum number of values; 0 means any number.
	Values int
	// Strict rejects invalid UTF-8 and duplicate keys.
	Strict bool
	// Number checks the text of a number and returns what is wrong with it, or "".
	// nil accepts all numbers.
	Number func(token string) string
}

// maxDepth is the limit of encoding/json.
const maxDepth = 10_000

// Parse parses one JSON value that may be followed only by white space. Like
// encoding/json it replaces invalid UTF-8 and unpaired surrogates with U+FFFD.
// For a duplicate key it keeps the last value in the position of the first. The
// error is a *[SyntaxError].
func Parse(data []byte, o Options) (*Value, error) {
	p := Parser{Options: o}
	return p.Parse(data)
}

// Check returns the error that [Parse] would return, at less cost.
func Check(data []byte, o Options) *SyntaxError {
	p := Parser{Options: o, checks: true}
	_, err := p.parse(data)
	return err
}

// Parser parses JSON texts and reuses its memory: the tree that Parse returns
// is valid until the next call. The zero value is ready to use.
type Parser struct {
	Options
	// Duplicate is set by Parse if an object had a duplicate key.
	Duplicate bool
	twice     string // the first duplicate key

	scanner
	src    string // the data, of which tokens are parts
	checks bool   // do not build a tree
	count  int    // of values so far
	// Memory for trees.
	values  []Value
	members []Member
	items   []*Value
	// Contents of the objects and arrays that are being parsed.
	openMembers []Member
	openItems   []*Value
}

// Parse is like the function [Parse], with the options of p.
func (p *Parser) Parse(data []byte) (*Value, error) {
	v, err := p.parse(data)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (p *Parser) parse(data []byte) (*Value, *SyntaxError) {
	p.scanner, p.src, p.Duplicate, p.count = scanner{data: data}, string(data), false, 0
	if !utf8.ValidString(p.src) {
		if p.Strict {
			at := invalidUTF8(p.src)
			return nil, &SyntaxError{Offset: at, Message: fmt.Sprintf("invalid UTF-8 at byte %d", at)}
		}
		p.src = strings.Map(func(r rune) rune { return r }, p.src) // U+FFFD for each invalid byte
		p.data = []byte(p.src)
	}
	p.values, p.members, p.items = p.values[:0], p.members[:0], p.items[:0]
	p.openMembers, p.openItems = p.openMembers[:0], p.openItems[:0]
	if p.values == nil && !p.checks { // one estimate instead of growing repeatedly
		p.values = make([]Value, 0, min(len(data)/8+1, 1024))
	}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, ok := p.peek(); ok {
		return nil, p.fail("text after the JSON value, at %s", p.place())
	}
	return v, nil
}

func (p *Parser) value(depth int) (*Value, *SyntaxError) {
	c, ok := p.peek()
	if !ok {
		return nil, p.unexpected("")
	}
	if p.count++; p.Values > 0 && p.count > p.Values {
		return nil, p.fail("more than %d values", p.Values)
	}
	v := Value{Kind: kindOf(c)}
	var err *SyntaxError
	switch v.Kind {
	case Object, Array:
		return p.nested(v.Kind, depth)
	case String:
		v.Token, err = p.string()
	case True:
		v.Token, err = p.literal("true")
	case False:
		v.Token, err = p.literal("false")
	case Null:
		v.Token, err = p.literal("null")
	case Number:
		v.Token, err = p.checkedNumber()
	default:
		err = p.unexpected("instead of a value")
	}
	if err != nil {
		return nil, err
	}
	return p.alloc(v), nil
}

// nested parses an object or an array; the next byte is its bracket.
func (p *Parser) nested(kind Kind, depth int) (*Value, *SyntaxError) {
	p.pos++
	if limit := min(cmp.Or(p.Depth, maxDepth), maxDepth); depth >= limit {
		return nil, p.fail("nested deeper than %d levels", limit)
	}
	if kind == Object {
		return p.object(depth + 1)
	}
	return p.array(depth + 1)
}

func (p *Parser) checkedNumber() (string, *SyntaxError) {
	start := p.pos
	token, err := p.token(start, p.number())
	if err == nil && p.Number != nil {
		if wrong := p.Number(token); wrong != "" {
			return "", p.fail("%s", wrong)
		}
	}
	return token, err
}

// alloc returns a value in the parser's own memory. When the block is full, it is
// left to the trees that point to it, and a larger block is allocated.
func (p *Parser) alloc(v Value) *Value {
	if p.checks {
		return nil
	}
	if len(p.values) == cap(p.values) {
		p.values = make([]Value, 0, max(64, 2*cap(p.values)))
	}
	p.values = append(p.values, v)
	return &p.values[len(p.values)-1]
}

func (p *Parser) object(depth int) (*Value, *SyntaxError) {
	base := len(p.openMembers)
	c, ok := p.peek()
	if c == '}' {
		p.pos++
		return p.alloc(Value{Kind: Object}), nil
	}
	var seen map[string]int // only for objects too large for a linear search
	where := ""             // encoding/json's wording if the first key is not a string
	for {
		if !ok || c != '"' {
			return nil, p.unexpected(where)
		}
		var err *SyntaxError
		if seen, err = p.member(base, seen, depth); err != nil {
			return nil, err
		}
		switch c, _ = p.peek(); c {
		case '}':
			p.pos++
			v := p.alloc(Value{Kind: Object, Members: carve(&p.members, p.openMembers[base:], p.checks)})
			p.openMembers = p.openMembers[:base]
			return v, nil
		case ',':
			p.pos++
		default:
			return nil, p.unexpected("after a member of an object")
		}
		c, ok = p.peek()
		where = "instead of a key"
	}
}

// member parses a key and its value into the object that starts at base,
// replacing the value of the same key. It returns the updated index of names.
func (p *Parser) member(base int, seen map[string]int, depth int) (map[string]int, *SyntaxError) {
	token, err := p.string()
	if err != nil {
		return seen, err
	}
	name := unquote(token)
	at := p.findMember(base, seen, name)
	if at >= 0 && p.Strict {
		return seen, p.fail("duplicate key %s, at %s", text.Quote(name), p.place()).within(name)
	}
	if c, _ := p.peek(); c != ':' {
		return seen, p.unexpected("after a key").within(name)
	}
	p.pos++
	v, err := p.value(depth)
	if err != nil {
		return seen, err.within(name)
	}
	if at >= 0 {
		if !p.Duplicate {
			p.Duplicate, p.twice = true, name
		}
		p.openMembers[base+at].Value = v
		return seen, nil
	}
	p.openMembers = append(p.openMembers, Member{Name: name, Value: v})
	return p.indexed(base, seen), nil
}

// maxScan is the number of members up to which a linear search is faster than a
// map.
const maxScan = 32

// findMember returns the index of the member with a name in the object that starts at
// base; -1 if there is none. It loops over the members in place, because a
// function call for each costs a copy.
func (p *Parser) findMember(base int, seen map[string]int, name string) int {
	if seen != nil {
		if i, ok := seen[name]; ok {
			return i
		}
		return -1
	}
	all := p.openMembers[base:]
	for i := range all {
		if all[i].Name == name {
			return i
		}
	}
	return -1
}

// indexed returns the index of names of the object that starts at base,
// including its newest member; nil while there are few.
func (p *Parser) indexed(base int, seen map[string]int) map[string]int {
	all := p.openMembers[base:]
	switch {
	case seen != nil:
		seen[all[len(all)-1].Name] = len(all) - 1
	case len(all) == maxScan:
		seen = make(map[string]int, 4*maxScan)
		for i := range all {
			seen[all[i].Name] = i
		}
	}
	return seen
}

func (p *Parser) array(depth int) (*Value, *SyntaxError) {
	base := len(p.openItems)
	switch c, ok := p.peek(); {
	case !ok:
		return nil, p.early()
	case c == ']':
		p.pos++
		return p.alloc(Value{Kind: Array}), nil
	}
	for i := 0; ; i++ {
		v, err := p.value(depth)
		if err != nil {
			return nil, err.within(strconv.Itoa(i))
		}
		if !p.checks {
			p.openItems = append(p.openItems, v)
		}
		switch c, _ := p.peek(); c {
		case ']':
			p.pos++
			v := p.alloc(Value{Kind: Array, Items: carve(&p.items, p.openItems[base:], p.checks)})
			p.openItems = p.openItems[:base]
			return v, nil
		case ',':
			p.pos++
		default:
			return nil, p.unexpected("after an element of an array")
		}
	}
}

// carve copies part to the end of memory and returns it without spare capacity,
// so that appending to it does not overwrite its neighbors.
func carve[T any](memory *[]T, part []T, none bool) []T {
	if none {
		return nil
	}
	if cap(*memory)-len(*memory) < len(part) {
		*memory = make([]T, 0, max(64, 2*cap(*memory), len(part)))
	}
	start := len(*memory)
	*memory = append(*memory, part...)
	return (*memory)[start:len(*memory):len(*memory)]
}

// Explain returns an error of [json.Unmarshal] about data in the words of [Unmarshal].
func Explain(data []byte, err error) error {
	if err == nil {
		return nil
	}
	if syntax := Check(data, Options{}); syntax != nil {
		return syntax
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	place := "it"
	if wrong.Field != "" {
		place = fmt.Sprintf("%.100q", wrong.Field)
	}
	kind, number, isNumber := strings.Cut(wrong.Value, " ") // such as "number 1.5"
	is := withArticle(kind)
	if isNumber && len(number) <= 40 {
		is = number
	}
	return fmt.Errorf("%s is %s, not %s", place, is, jsonType(wrong.Type, isNumber))
}

// DecodeKnown is like [Unmarshal] for a v that must have a field for each key.
func DecodeKnown(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return Explain(data, dec.Decode(v))
}

// Unmarshal is like [json.Unmarshal], but its errors are for people: they name JSON's types,
// not Go's, and the place of a mistake.
func Unmarshal(data []byte, v any) error { return Explain(data, json.Unmarshal(data, v)) }
