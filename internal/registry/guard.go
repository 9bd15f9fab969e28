package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// maxBranches limits how many subschemas one place in the params can be checked
// against. A schema of 1 KB can require 2^29.
const maxBranches = 1_000_000

// guardSchema parses an untrusted schema and makes it safe to compile: it
// rejects schemas of unbounded cost and removes patterns that RE2 does not
// support, with a note for each. The input is not modified.
func guardSchema(raw json.RawMessage) (tree *jsonx.Value, notes []string, err error) {
	if len(raw) > MaxSchemaBytes {
		return nil, nil, fmt.Errorf("schema has %d bytes, but the limit is %d", len(raw), MaxSchemaBytes)
	}
	if tree, err = decodeSchema(raw); err != nil {
		return nil, nil, err
	}
	g := &guard{refs: schema.NewRefs(tree), branches: map[string]int{}}
	if err := g.walk(tree, 0, schema.Schemas); err != nil {
		return nil, nil, err
	}
	if n := g.count(tree); n > maxBranches {
		return nil, nil, fmt.Errorf("schema has more than %d branches for one value", maxBranches)
	}
	slices.Sort(g.notes)
	return tree, g.notes, nil
}

func decodeSchema(raw json.RawMessage) (*jsonx.Value, error) {
	tree, err := jsonx.Parse(raw, jsonx.Options{})
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	switch tree.Kind {
	case jsonx.Object, jsonx.True, jsonx.False:
		return tree, nil
	}
	return nil, errors.New("schema must be an object or a boolean")
}

type guard struct {
	refs     *schema.Refs
	notes    []string
	branches map[string]int // cost of a $ref target; -1 while counting
}

// walk checks v and everything below it; is is the kind of v. The value of an
// unknown keyword is treated as a schema.
func (g *guard) walk(v *jsonx.Value, depth int, is schema.Content) error {
	if depth > MaxDepth {
		return fmt.Errorf("schema is nested deeper than %d", MaxDepth)
	}
	if v.Kind == jsonx.Number && !saneNumber(v.Token) {
		return fmt.Errorf("schema contains the number %.40s, whose exponent is over %d", v.Token, maxExponent)
	}
	for _, item := range v.Items {
		if err := g.walk(item, depth+1, is); err != nil {
			return err
		}
	}
	isSchema := is == schema.Schemas || is == schema.Other
	if isSchema && v.Kind == jsonx.Object {
		lowerType(v)
		schema.AllowNull(v)
		g.patterns(v)
	}
	for _, m := range v.Members {
		below := schema.Data
		if isSchema {
			below = schema.Under(m.Name)
		} else if is == schema.Named {
			below = schema.Schemas
		}
		if err := g.walk(m.Value, depth+1, below); err != nil {
			return err
		}
	}
	return nil
}

// lowerType converts the types of Gemini's own schemas (STRING, OBJECT, …) to
// those of JSON Schema, because discovered tools are often declared with them.
func lowerType(n *jsonx.Value) {
	switch t := n.Get("type").Text(); t {
	case "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL":
		n.Set("type", jsonx.NewString(strings.ToLower(t)))
	}
}

// patterns rewrites or removes the regular expressions of one schema.
func (g *guard) patterns(n *jsonx.Value) {
	if p := n.Get("pattern"); p.Is(jsonx.String) {
		if re, ok := toRE2(p.Text()); ok {
			n.Set("pattern", jsonx.NewString(re))
		} else {
			n.Remove("pattern")
			g.notes = append(g.notes, fmt.Sprintf("pattern %q is not checked: RE2 does not support it", p.Text()))
		}
	}
	props := n.Get("patternProperties")
	if !props.Is(jsonx.Object) {
		return
	}
	for _, m := range slices.Clone(props.Members) {
		re, ok := toRE2(m.Name)
		if ok && re == m.Name {
			continue
		}
		props.Remove(m.Name)
		if ok {
			props.Set(re, m.Value)
			continue
		}
		// Without the pattern, it is unknown which keys are additional.
		n.Remove("additionalProperties")
		n.Remove("unevaluatedProperties")
		g.notes = append(g.notes, fmt.Sprintf("patternProperties %q is not checked: RE2 does not support it", m.Name))
	}
}

// toRE2 converts an ECMAScript regular expression to RE2 syntax. It returns false
// if this is not possible.
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

// count returns the largest number of subschemas that may be tried on the same
// value, for any schema in v. It stops counting just above maxBranches.
func (g *guard) count(v *jsonx.Value) int {
	most := 0
	if v.Kind == jsonx.Object {
		most = g.inPlace(v, 0)
	}
	for _, item := range v.Items {
		most = max(most, g.count(item))
	}
	for _, m := range v.Members {
		most = max(most, g.count(m.Value))
	}
	return most
}

// inPlace counts the subschemas that apply to the same value as v.
func (g *guard) inPlace(v *jsonx.Value, depth int) int {
	if v.Kind != jsonx.Object || depth > maxRefDepth {
		return 1
	}
	total := 1
	add := func(n int) { total = min(total+n, maxBranches+1) }
	for _, m := range v.Members {
		switch m.Name {
		case "not", "if", "then", "else":
			add(g.inPlace(m.Value, depth+1))
		case "anyOf", "oneOf", "allOf":
			for _, item := range m.Value.Items {
				add(g.inPlace(item, depth+1))
			}
		case "dependentSchemas", "dependencies":
			for _, d := range m.Value.Members {
				add(g.inPlace(d.Value, depth+1))
			}
		case "$ref", "$dynamicRef", "$recursiveRef":
			if m.Value.Is(jsonx.String) {
				add(g.target(m.Value.Text(), depth))
			}
		}
	}
	return total
}

// maxRefDepth limits chains of references; the time limit of validation stops
// longer ones.
const maxRefDepth = 5000

func (g *guard) target(ref string, depth int) int {
	if n, ok := g.branches[ref]; ok {
		return max(n, 1) // -1 is a cycle; the compiler rejects it, or the depth of the data limits it
	}
	g.branches[ref] = -1
	n := 1
	if v := g.refs.Lookup(ref); v != nil {
		n = g.inPlace(v, depth+1)
	}
	g.branches[ref] = n
	return n
}
