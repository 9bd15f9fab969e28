package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// maxBranches bounds how many subschemas one place of the params can be
// checked against. A schema of 1 KB can ask for 2^29.
const maxBranches = 1_000_000

// guardSchema reads a schema from outside and makes it safe to compile: it
// refuses what would cost without bound and drops patterns that RE2 cannot
// take, telling of each. The input stays as it is.
func guardSchema(raw json.RawMessage) (tree any, notes []string, err error) {
	if len(raw) > MaxSchemaBytes {
		return nil, nil, fmt.Errorf("schema of %d bytes is over the limit of %d", len(raw), MaxSchemaBytes)
	}
	if tree, err = decodeSchema(raw); err != nil {
		return nil, nil, err
	}
	g := &guard{root: tree, branches: map[string]int{}}
	if err := g.walk(tree, 0, inSchema); err != nil {
		return nil, nil, err
	}
	if n := g.count(tree, 0); n > maxBranches {
		return nil, nil, fmt.Errorf("schema has more than %d branches for one value", maxBranches)
	}
	slices.Sort(g.notes)
	return tree, g.notes, nil
}

func decodeSchema(raw json.RawMessage) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	switch tree.(type) {
	case map[string]any, bool:
		return tree, nil
	}
	return nil, errors.New("schema is neither an object nor a boolean")
}

type guard struct {
	root     any
	notes    []string
	branches map[string]int // in-place cost of a $ref target; -1 while counting
}

// walk checks every node. Below const, enum, default and examples stand data,
// whose keys mean nothing.
func (g *guard) walk(node any, depth int, in place) error {
	if depth > MaxDepth {
		return fmt.Errorf("schema is nested deeper than %d", MaxDepth)
	}
	switch n := node.(type) {
	case json.Number:
		if !saneNumber(n.String()) {
			return fmt.Errorf("schema holds the number %.40s, whose exponent is over %d", n, maxExponent)
		}
	case []any:
		for _, v := range n {
			if err := g.walk(v, depth+1, in); err != nil {
				return err
			}
		}
	case map[string]any:
		if in == inSchema {
			lowerType(n)
			g.patterns(n)
		}
		for _, k := range slices.Sorted(maps.Keys(n)) {
			if err := g.walk(n[k], depth+1, in.below(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// place says what an object in a schema is.
type place int

const (
	inSchema place = iota // a schema: its keys are keywords
	inNames               // a map of names to schemas
	inData                // a value, whose keys mean nothing
)

// below returns what stands behind a key.
func (p place) below(key string) place {
	switch {
	case p == inData:
		return inData
	case p == inNames:
		return inSchema
	}
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return inNames
	case "enum", "const", "default", "examples":
		return inData
	}
	return inSchema
}

// lowerType turns the types of Gemini's own schemas (STRING, OBJECT, …) into
// those of JSON Schema; discovered tools are often declared so.
func lowerType(n map[string]any) {
	t, ok := n["type"].(string)
	if !ok {
		return
	}
	switch t {
	case "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL":
		n["type"] = strings.ToLower(t)
	}
}

// patterns rewrites or drops the regular expressions of one node.
func (g *guard) patterns(n map[string]any) {
	if p, ok := n["pattern"].(string); ok {
		if re, ok := toRE2(p); ok {
			n["pattern"] = re
		} else {
			delete(n, "pattern")
			g.notes = append(g.notes, fmt.Sprintf("pattern %q is not checked: RE2 cannot take it", p))
		}
	}
	props, ok := n["patternProperties"].(map[string]any)
	if !ok {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(props)) {
		re, ok := toRE2(p)
		if ok && re == p {
			continue
		}
		sub := props[p]
		delete(props, p)
		if ok {
			props[re] = sub
			continue
		}
		// Without the pattern nobody can tell which keys are additional.
		delete(n, "additionalProperties")
		delete(n, "unevaluatedProperties")
		g.notes = append(g.notes, fmt.Sprintf("patternProperties %q is not checked: RE2 cannot take it", p))
	}
}

// toRE2 turns an ECMA regular expression into Go's syntax, or says that it
// cannot.
func toRE2(p string) (string, bool) {
	if _, err := regexp.Compile(p); err == nil {
		return p, true
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		if p[i] != '\\' || i+1 == len(p) {
			b.WriteByte(p[i])
			continue
		}
		if p[i+1] == 'u' && i+6 <= len(p) && isHex(p[i+2:i+6]) {
			b.WriteString(`\x{` + p[i+2:i+6] + `}`)
			i += 5
			continue
		}
		b.WriteString(p[i : i+2])
		i++
	}
	_, err := regexp.Compile(b.String())
	return b.String(), err == nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// count returns how many subschemas may be tried on one and the same value,
// saturating just above maxBranches, as the largest over all nodes.
func (g *guard) count(node any, depth int) int {
	n, ok := node.(map[string]any)
	if !ok {
		most := 0
		if list, isList := node.([]any); isList {
			for _, v := range list {
				most = max(most, g.count(v, depth+1))
			}
		}
		return most
	}
	most := g.inPlace(n, 0)
	for _, v := range n {
		most = max(most, g.count(v, depth+1))
	}
	return most
}

// inPlace counts the subschemas that apply to the same value as n does.
func (g *guard) inPlace(node any, depth int) int {
	n, ok := node.(map[string]any)
	if !ok || depth > maxRefDepth {
		return 1
	}
	total := 1
	add := func(v any) { total = min(total+g.inPlace(v, depth+1), maxBranches+1) }
	for _, k := range []string{"not", "if", "then", "else"} {
		if v, ok := n[k]; ok {
			add(v)
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := n[k].([]any)
		for _, v := range list {
			add(v)
		}
	}
	for _, k := range []string{"dependentSchemas", "dependencies"} {
		deps, _ := n[k].(map[string]any)
		for _, v := range deps {
			add(v)
		}
	}
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := n[k].(string); ok {
			total = min(total+g.target(ref, depth), maxBranches+1)
		}
	}
	return total
}

// maxRefDepth bounds chains of references; a longer one is cut by the deadline
// around validation.
const maxRefDepth = 5000

func (g *guard) target(ref string, depth int) int {
	if n, ok := g.branches[ref]; ok {
		return max(n, 1) // -1: a cycle, which the compiler refuses or the data bounds
	}
	g.branches[ref] = -1
	n := 1
	if v, ok := resolvePointer(g.root, ref); ok {
		n = g.inPlace(v, depth+1)
	}
	g.branches[ref] = n
	return n
}

// resolvePointer finds what a local reference ("#/a/b") points at.
func resolvePointer(root any, ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	node := root
	for _, tok := range splitPointer(pointer) {
		switch n := node.(type) {
		case map[string]any:
			if node, ok = n[tok]; !ok {
				return nil, false
			}
		case []any:
			i, err := parseIndex(tok, len(n))
			if err != nil {
				return nil, false
			}
			node = n[i]
		default:
			return nil, false
		}
	}
	return node, true
}
