package declare

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

var errCycle = errors.New("its references run in a circle")

// maxRefChain bounds how many references may follow one another.
const maxRefChain = 64

// resolver follows references within one schema ("#", "#/…"; nothing else).
// It remembers what it looked up, so that a schema with thousands of
// definitions and references costs no more than its size.
type resolver struct {
	root *node
	keys map[*node]map[string]*node // of large objects
}

func newResolver(root *node) *resolver { return &resolver{root: root} }

// resolve follows the $ref of n, and those of its targets, to a node without.
func (r *resolver) resolve(n *node) (*node, error) {
	for range maxRefChain {
		ref := n.get("$ref")
		if ref == nil || ref.kind != kindString {
			return n, nil
		}
		target := r.lookup(ref.text())
		if target == nil {
			return nil, fmt.Errorf("its reference %.80q leads nowhere within the schema", ref.text())
		}
		n = target
	}
	return nil, errCycle
}

// lookup returns what a local reference points at, nil where that is nothing.
func (r *resolver) lookup(ref string) *node {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if p, err := url.PathUnescape(pointer); err == nil {
		pointer = p
	}
	if pointer == "" {
		return r.root
	}
	if pointer[0] != '/' {
		return nil
	}
	n := r.root
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch {
		case n == nil:
			return nil
		case n.kind == kindArray:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil
			}
			n = n.items[i]
		default:
			n = r.get(n, step)
		}
	}
	return n
}

// get is node.get, by a map where the object is large.
func (r *resolver) get(n *node, name string) *node {
	if len(n.members) <= maxScan {
		return n.get(name)
	}
	keys := r.keys[n]
	if keys == nil {
		keys = byName(n)
		if r.keys == nil {
			r.keys = map[*node]map[string]*node{}
		}
		r.keys[n] = keys
	}
	return keys[name]
}

func byName(n *node) map[string]*node {
	keys := make(map[string]*node, len(n.members))
	for i := range n.members {
		keys[n.members[i].name] = n.members[i].value
	}
	return keys
}

// eachSchema calls f for every schema directly within n, whatever keyword
// holds it. Booleans are left out.
func eachSchema(n *node, f func(*node)) {
	visit := func(v *node) {
		if v != nil && v.kind == kindObject {
			f(v)
		}
	}
	for i := range n.members {
		v := n.members[i].value
		switch n.members[i].name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for j := range v.members {
				visit(v.members[j].value)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, item := range v.items {
				visit(item)
			}
		case "items":
			visit(v)
			for _, item := range v.items {
				visit(item)
			}
		case "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems",
			"not", "if", "then", "else", "contains", "propertyNames":
			visit(v)
		}
	}
}

// hasType reports whether the type keyword of n names t, alone or in a list.
func hasType(n *node, t string) bool {
	typ := n.get("type")
	if typ == nil {
		return false
	}
	if typ.kind != kindArray {
		return typ.is(t)
	}
	for _, v := range typ.items {
		if v.is(t) {
			return true
		}
	}
	return false
}

// withoutDeadRefs drops references that lead nowhere within the schema: APIs
// look them up and refuse the whole request where they find nothing. What is
// left of the schema takes more; calls are still checked against the whole.
func withoutDeadRefs(t *tool) (changes []string) {
	if !bytes.Contains(t.def.InputSchema, []byte(`$ref"`)) {
		return nil
	}
	d := deadRefs{refs: newResolver(t.schema)}
	d.drop(t.schema)
	if d.found {
		return []string{"references that lead nowhere dropped"}
	}
	return nil
}

type deadRefs struct {
	refs    *resolver
	anchors map[string]bool // nil until needed
	found   bool
}

func (d *deadRefs) drop(n *node) {
	if ref := n.get("$ref"); ref != nil && (ref.kind != kindString || !d.leads(n, ref.text())) {
		n.remove("$ref")
		d.found = true
	}
	eachSchema(n, d.drop)
}

func (d *deadRefs) leads(n *node, ref string) bool {
	if _, err := d.refs.resolve(n); err == nil {
		return true
	}
	name, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return false
	}
	if d.anchors == nil {
		d.anchors = map[string]bool{}
		d.collect(d.refs.root)
	}
	return d.anchors[name]
}

// collect finds the names that schemas give themselves, in the words of any
// draft.
func (d *deadRefs) collect(n *node) {
	for _, keyword := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		if name := n.get(keyword).text(); name != "" {
			d.anchors[strings.TrimPrefix(name, "#")] = true
		}
	}
	eachSchema(n, d.collect)
}
