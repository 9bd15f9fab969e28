package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Settled is a schema as the whole program reads it: one that is valid in draft 2020-12,
// whose references all lead to schemas within it, by JSON pointers.
type Settled struct {
	// Raw is the schema, in the bytes that were given if nothing had to be changed.
	Raw json.RawMessage
	// Tree is the parsed schema. It is valid until the next call of Settle.
	Tree *jsonx.Value
	// Open says, for each reference that leads nowhere or only to itself, that its place accepts
	// anything.
	Open []string
}

// Settler settles schemas. Its Options limit what it reads.
type Settler struct{ jsonx.Parser }

// Settle determines once what a schema of any draft from 4 to 2020-12 means: keywords that
// are null or an empty list as PHP writes them are absent, words of older drafts, OpenAPI
// and Gemini become those of 2020-12, and references that lead nowhere are removed. A
// settled schema is not changed again. The error says why a schema cannot be used.
func (s *Settler) Settle(raw json.RawMessage) (Settled, error) {
	root, err := s.Parse(raw)
	if err != nil {
		return Settled{}, fmt.Errorf("schema is not JSON: %w", err)
	}
	if !isSchema(root) {
		return Settled{}, errors.New("schema must be an object or a boolean")
	}
	t := settling{root: root, refs: NewRefs(root), older: isOlder(root)}
	if bytes.Contains(raw, []byte(`ef"`)) || bytes.Contains(raw, []byte(`\u`)) {
		t.known = map[*jsonx.Value]bool{}
		t.collect(root, root)
	}
	if err := t.settle(); err != nil {
		return Settled{}, err
	}
	out := Settled{Raw: raw, Tree: root, Open: t.open}
	if t.changed {
		out.Raw = root.AppendTo(nil)
	}
	return out, nil
}

// maxOpen is the maximum number of references that are reported one by one.
const maxOpen = 10

func isSchema(v *jsonx.Value) bool {
	return v.Is(jsonx.Object) || v.Is(jsonx.True) || v.Is(jsonx.False)
}

// isOlder reports whether a schema says that it is of a draft up to 7, in which keywords next to a reference
// are ignored.
func isOlder(root *jsonx.Value) bool {
	return strings.Contains(root.Get("$schema").Text(), "json-schema.org/draft-0")
}

// RemoveDialect removes a $schema that does not name draft 2020-12, of which settled schemas are.
func RemoveDialect(root *jsonx.Value) {
	if !strings.Contains(root.Get("$schema").Text(), "json-schema.org/draft/2020-12/") {
		root.Remove("$schema")
	}
}

// settle settles the schema, and the parts under unknown keywords to which references lead.
func (t *settling) settle() error {
	for i := 0; i < len(t.links); i++ {
		l := t.links[i]
		if l.to = t.target(l); l.to.Is(jsonx.Object) {
			t.collect(l.to, l.base) // if an unknown keyword has it
		}
	}
	if p := t.schema(t.root); p != nil {
		return p
	}
	for _, l := range t.links {
		if l.to != nil {
			if p := t.schema(l.to); p != nil {
				return p
			}
		}
	}
	t.relink()
	c := cutter{settling: t, state: map[*jsonx.Value]int{}}
	c.cut(t.root)
	for _, l := range t.links {
		c.cut(l.from)
	}
	Loosen(t.root, t.opened)
	slices.Sort(t.open)
	t.open = slices.Compact(t.open)
	if more := len(t.open) - maxOpen; more > 0 {
		t.open = append(t.open[:maxOpen], fmt.Sprintf("%d more references lead nowhere", more))
	}
	if t.modern {
		RemoveDialect(t.root)
	}
	if len(t.links) == 0 {
		return nil // no value has more branches than the schema has parts
	}
	b := branches{refs: NewRefs(t.root), known: map[string]int{}}
	if b.count(t.root) > maxBranches {
		return fmt.Errorf("schema has more than %d branches for one value", maxBranches)
	}
	return nil
}

// target returns the schema to which a reference leads, or nil.
func (t *settling) target(l *link) *jsonx.Value {
	ref := l.from.Get("$ref").Text()
	var found *jsonx.Value
	if strings.HasPrefix(ref, "#") && l.base != t.root {
		found = t.within(l.base).Lookup(ref)
	}
	if found == nil {
		found = t.refs.Lookup(ref)
	}
	if found == nil {
		_, name, _ := strings.Cut(ref, "#/")
		if keyword, name, ok := strings.Cut(name, "/"); ok && (keyword == "$defs" || keyword == "definitions") {
			found = t.defined(name)
		}
	}
	if !isSchema(found) && !found.Is(jsonx.Null) {
		return nil
	}
	return found
}

// within returns the references within a part of the schema that has an $id.
func (t *settling) within(base *jsonx.Value) *Refs {
	if t.bases[base] == nil {
		if t.bases == nil {
			t.bases = map[*jsonx.Value]*Refs{}
		}
		t.bases[base] = NewRefs(base)
	}
	return t.bases[base]
}

// defined returns the only schema that is defined under a name anywhere, or nil if there is none
// or more than one. It exists because generators leave definitions within the schema that they
// belong to, while references expect them at the root.
func (t *settling) defined(name string) *jsonx.Value {
	if t.definitions == nil {
		t.definitions = map[string][]*jsonx.Value{}
		for n := range t.known {
			for _, keyword := range []string{"$defs", "definitions"} {
				for _, m := range n.Get(keyword).Fields() {
					t.definitions[m.Name] = append(t.definitions[m.Name], m.Value)
				}
			}
		}
	}
	if found := t.definitions[name]; len(found) == 1 {
		return found[0]
	}
	return nil
}

// relink writes the references whose text does not lead to their target by itself.
func (t *settling) relink() {
	refs := NewRefs(t.root)
	var places map[*jsonx.Value]string
	for _, l := range t.links {
		if l.to == nil {
			continue
		}
		ref := l.from.Get("$ref").Text()
		_, err := url.Parse(ref)
		if err == nil && (ref == "#" || strings.HasPrefix(ref, "#/")) && refs.Lookup(ref) == l.to {
			continue
		}
		if places == nil {
			places = map[*jsonx.Value]string{}
			addPlaces(places, t.root, "")
		}
		l.from.Set("$ref", jsonx.NewString((&url.URL{Fragment: places[l.to]}).String()))
		if places[l.to] == "" {
			l.from.Set("$ref", jsonx.NewString("#"))
		}
		t.changed, t.modern = true, true
	}
}

// addPlaces adds the JSON pointers of all values.
func addPlaces(to map[*jsonx.Value]string, v *jsonx.Value, at string) {
	to[v] = at
	for _, m := range v.Members {
		addPlaces(to, m.Value, at+"/"+jsonx.EscapeToken(m.Name))
	}
	for i, item := range v.Items {
		addPlaces(to, item, fmt.Sprintf("%s/%d", at, i))
	}
}

// cutter removes references by which a schema applies itself to the same value.
type cutter struct {
	*settling
	state map[*jsonx.Value]int
}

const (
	inProgress = 1 + iota
	finished
)

// cut visits all schemas that apply to the same value as n. It reports whether one of them
// is in progress, so that the last reference on the way has to go.
func (c *cutter) cut(n *jsonx.Value) (loops bool) {
	switch {
	case !n.Is(jsonx.Object), c.state[n] == finished:
		return false
	case c.state[n] == inProgress:
		return true
	}
	c.state[n] = inProgress
	if l := c.byNode[n]; l != nil && l.to != nil && c.cut(l.to) {
		c.drop(n, "leads to itself")
		l.to = nil
	}
	for part := range inPlace(n) {
		if c.cut(part) {
			c.state[n] = 0
			return true
		}
	}
	c.state[n] = finished
	return false
}

// maxBranches limits how many subschemas one place in a value can be checked against. A
// schema of 1 KB can require 2^29.
const maxBranches = 1_000_000

// maxRefDepth limits chains of references; the time limit of validation stops longer ones.
const maxRefDepth = 5000

type branches struct {
	refs  *Refs
	known map[string]int // of the target of a reference; -1 while counting
}

// count returns the largest number of subschemas that may be tried on the same value, for
// any schema in v. It stops counting just above maxBranches.
func (b *branches) count(v *jsonx.Value) int {
	most := 0
	if v.Kind == jsonx.Object {
		most = b.here(v, 0)
	}
	for _, item := range v.Items {
		most = max(most, b.count(item))
	}
	for _, m := range v.Members {
		most = max(most, b.count(m.Value))
	}
	return most
}

// here counts the subschemas that apply to the same value as v.
func (b *branches) here(v *jsonx.Value, depth int) int {
	if v.Kind != jsonx.Object || depth > maxRefDepth {
		return 1
	}
	total := 1
	add := func(n int) { total = min(total+n, maxBranches+1) }
	for part := range inPlace(v) {
		add(b.here(part, depth+1))
	}
	if ref := v.Get("$ref"); ref.Is(jsonx.String) {
		add(b.target(ref.Text(), depth))
	}
	return total
}

func (b *branches) target(ref string, depth int) int {
	if n, ok := b.known[ref]; ok {
		return max(n, 1)
	}
	b.known[ref] = -1
	n := 1
	if v := b.refs.Lookup(ref); v != nil {
		n = b.here(v, depth+1)
	}
	b.known[ref] = n
	return n
}

// Loosen changes the schemas of root around those in open, of which something was removed so that they
// accept more values than they should. Where more would be refused for that, they accept more, too: not and
// if are removed, and oneOf becomes anyOf.
func Loosen(root *jsonx.Value, open map[*jsonx.Value]bool) {
	if len(open) == 0 {
		return
	}
	l := loosening{refs: NewRefs(root), loose: open, seen: map[*jsonx.Value]bool{}}
	l.visit(root)
}

type loosening struct {
	refs  *Refs
	loose map[*jsonx.Value]bool
	seen  map[*jsonx.Value]bool
}

// visit visits s and all below, and reports whether s accepts more than it should.
func (l *loosening) visit(s *jsonx.Value) bool {
	if !s.Is(jsonx.Object) || l.seen[s] {
		return l.loose[s]
	}
	l.seen[s] = true
	if ref := s.Get("$ref"); ref.Is(jsonx.String) && l.visit(l.refs.Lookup(ref.Text())) {
		l.loose[s] = true
	}
	var within []string // keywords with such schemas
	for _, m := range s.Members {
		if Under(m.Name) == Other || Under(m.Name) == Data {
			continue
		}
		loose := false
		for part := range Within(jsonx.NewObject(m)) {
			loose = l.visit(part) || loose
		}
		if loose {
			within = append(within, m.Name)
			l.loose[s] = true
		}
	}
	for _, keyword := range within {
		switch keyword {
		case "not", "if": // without if, then and else only describe params
			s.Remove(keyword)
		case "oneOf":
			alternatives := jsonx.NewMember("anyOf", s.Get(keyword))
			s.Remove(keyword)
			Add(s, alternatives)
		}
	}
	return l.loose[s]
}
