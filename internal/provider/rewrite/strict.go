package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// stricter converts a schema to the subset to which an API can constrain a
// model: objects are closed and keywords outside the subset are removed. In
// OpenAI's subset every property is required, and optional ones accept null
// instead.
type stricter struct {
	refs     *schema.Refs
	grammar  bool // use the subset of Anthropic's models
	dropped  map[string]bool
	closed   bool
	nullable []string // properties that were optional
	other    []string // other changes
	size     size
	found    Grammar
}

// Reasons why a schema cannot be strict.
var (
	errAnyValue = errors.New("a part of it accepts any value")
	errAnyName  = errors.New("an object in it accepts properties of any name")
	errSeveral  = errors.New("a part of it must match several schemas at once")
)

// Strict makes root an OpenAI strict schema and returns its changes. It returns an
// error if the schema's meaning would be lost or the schema exceeds OpenAI's
// limits; root must not be used then.
func Strict(root *jsonx.Value) (changes []string, err error) {
	s := stricter{refs: schema.NewRefs(root), dropped: map[string]bool{}}
	if err := s.schema(root, 0); err != nil {
		return nil, err
	}
	return s.changes(), s.size.check()
}

// Grammar is the contribution of a schema to the grammar that Anthropic compiles
// for a request with strict tools.
type Grammar struct {
	Optional int // properties that are not required
	Unions   int // values of several types
}

// Add returns the sum of two contributions.
func (g Grammar) Add(other Grammar) Grammar {
	return Grammar{g.Optional + other.Optional, g.Unions + other.Unions}
}

// StrictGrammar makes root a strict schema for Anthropic's models, like [Strict].
func StrictGrammar(root *jsonx.Value) (changes []string, cost Grammar, err error) {
	s := stricter{refs: schema.NewRefs(root), grammar: true, dropped: map[string]bool{}}
	if err := s.schema(root, 0); err != nil {
		return nil, Grammar{}, err
	}
	if s.recursive(root, map[*jsonx.Value]bool{}) {
		return nil, Grammar{}, errors.New("it contains itself")
	}
	return s.changes(), s.found, nil
}

// recursive reports whether a schema is recursive. state has the visited schemas,
// with true while the visit is in progress.
func (s *stricter) recursive(n *jsonx.Value, state map[*jsonx.Value]bool) bool {
	if within, seen := state[n]; seen {
		return within
	}
	state[n] = true
	if target, err := s.refs.Resolve(n); err != nil || target != n && s.recursive(target, state) {
		return true
	}
	for sub := range schema.Within(n) {
		if s.recursive(sub, state) {
			return true
		}
	}
	state[n] = false
	return false
}

// maxNamed is the maximum number of properties that a change lists.
const maxNamed = 10

func (s *stricter) changes() []string {
	out := slices.Clone(s.other)
	if s.closed {
		out = append(out, "objects closed to additional properties")
	}
	if len(s.nullable) > 0 {
		names := strings.Join(s.nullable[:min(len(s.nullable), maxNamed)], ", ")
		if more := len(s.nullable) - maxNamed; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, "optional properties made nullable: "+names)
	}
	if len(s.dropped) > 0 {
		out = append(out, "dropped: "+strings.Join(slices.Sorted(maps.Keys(s.dropped)), ", "))
	}
	return out
}

func (s *stricter) schema(n *jsonx.Value, depth int) error {
	if !n.Is(jsonx.Object) {
		return errAnyValue
	}
	if depth > maxStrictDepth {
		return fmt.Errorf("it is nested deeper than %d", maxStrictDepth)
	}
	if err := s.prune(n); err != nil {
		return err
	}
	kept, err := s.definitions(n)
	if err != nil {
		return err
	}
	if n.Get("$ref") != nil {
		if n.Get("properties") != nil || n.Get("anyOf") != nil || n.Get("enum") != nil {
			return errSeveral // keywords next to a reference also apply
		}
		s.only(n, append(kept, "$ref"))
		_, err := s.refs.Resolve(n)
		return err
	}
	if list := n.Get("anyOf"); list != nil {
		if n.Get("properties") != nil { // closed objects with different properties cannot be combined
			return errSeveral
		}
		s.found.Unions++
		if err := s.branches(list.Items, depth); err != nil || n.Get("type") == nil {
			return err
		}
	}
	return s.typed(n, depth)
}

func (s *stricter) branches(list []*jsonx.Value, depth int) error {
	for _, branch := range list {
		if err := s.schema(branch, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// typed rewrites the keywords that apply to the types of a schema.
func (s *stricter) typed(n *jsonx.Value, depth int) error {
	if n.Get("type").Is(jsonx.Array) {
		s.found.Unions++
	}
	if schema.HasType(n, "array") {
		items := n.Get("items")
		if items == nil {
			return errors.New("an array in it does not declare its items")
		}
		if err := s.schema(items, depth+1); err != nil {
			return err
		}
	}
	if schema.HasType(n, "object") {
		return s.object(n, depth)
	}
	return s.scalar(n)
}

// prune rewrites keywords that have a counterpart in the subset and removes the
// others.
func (s *stricter) prune(n *jsonx.Value) error {
	if all := n.Get("allOf"); all != nil {
		if len(all.Items) != 1 || !mergeable(n, all.Items[0]) {
			return errSeveral
		}
		n.Remove("allOf")
		n.Members = append(n.Members, all.Items[0].Members...)
		s.note("allOf of one schema merged")
	}
	if n.Get("oneOf") != nil && n.Get("anyOf") == nil {
		n.Rename("oneOf", "anyOf")
		s.note("oneOf converted to anyOf")
	}
	if n.Get("type") == nil && n.Get("properties") != nil {
		n.Prepend("type", jsonx.NewString("object"))
	}
	return s.drop(n)
}

// drop removes the keywords that are not in the subset.
func (s *stricter) drop(n *jsonx.Value) error {
	kept := make([]jsonx.Member, 0, len(n.Members))
	for _, m := range n.Members {
		switch {
		case m.Name == "patternProperties" || m.Name == "prefixItems":
			return errors.New("a part of it uses " + m.Name)
		case !s.keeps(m):
			s.dropped[m.Name] = true
		default:
			kept = append(kept, m)
		}
	}
	n.Members = kept
	return nil
}

// definitions rewrites the schemas that references refer to and returns the
// keywords that contain them.
func (s *stricter) definitions(n *jsonx.Value) (kept []string, err error) {
	for _, keyword := range []string{"$defs", "definitions"} {
		defs := n.Get(keyword)
		if defs == nil {
			continue
		}
		kept = append(kept, keyword)
		for _, m := range defs.Members {
			s.size.name(m.Name)
			if err := s.schema(m.Value, 0); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// only removes all keywords except the given ones. A reference must be the only
// keyword.
func (s *stricter) only(n *jsonx.Value, names []string) {
	n.Members = slices.DeleteFunc(n.Members, func(m jsonx.Member) bool {
		if slices.Contains(names, m.Name) {
			return false
		}
		s.dropped[m.Name+" next to $ref"] = true
		return true
	})
}

func (s *stricter) note(change string) {
	if !slices.Contains(s.other, change) {
		s.other = append(s.other, change)
	}
}
