package schema

import (
	"iter"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// maxBranches limits how many subschemas one place in a value can be checked against. A
// schema of 1 KB can require 2^29.
const maxBranches = 1_000_000

// maxRefDepth limits chains of references; the time limit of validation stops longer ones.
const maxRefDepth = 5000

// inPlace yields the schemas within n that apply to the same value as n.
func inPlace(n *jsonx.Value) iter.Seq[*jsonx.Value] {
	return func(yield func(*jsonx.Value) bool) {
		for _, m := range n.Members {
			switch m.Name {
			case "not", "if", "then", "else":
				if !yield(m.Value) {
					return
				}
			case "anyOf", "oneOf", "allOf":
				for _, item := range m.Value.Items {
					if !yield(item) {
						return
					}
				}
			case "dependentSchemas", "dependencies":
				for _, d := range m.Value.Members {
					if !yield(d.Value) {
						return
					}
				}
			}
		}
	}
}

// branches counts subschemas.
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
