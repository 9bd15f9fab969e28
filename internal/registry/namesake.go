package registry

import (
	"slices"
	"strings"
)

// Namesake is a built-in tool that has a name in common with a tool that is not this built-in
// one. What settings say about the built-in tool by any of its names reaches both, unless it
// allows something.
type Namesake struct {
	Name     string
	Aliases  []string
	Category Category
}

// has reports whether the built-in tool has a name, ignoring case.
func (n *Namesake) has(name string) bool {
	same := func(own string) bool { return strings.EqualFold(own, name) }
	return same(n.Name) || slices.ContainsFunc(n.Aliases, same)
}

// Bears returns the built-in tool whose name the tool is registered under although it is
// another tool; nil if there is none.
func (d *Definition) Bears() *Namesake {
	for i := range d.Namesakes {
		if d.Namesakes[i].has(d.Name) {
			return &d.Namesakes[i]
		}
	}
	return nil
}

// Called returns every name by which a setting that denies, asks, excludes or runs a hook
// refers to the tool: its spellings, its display name, and the names of the built-in tools that have one
// of its own.
func (d *Definition) Called() []string {
	out := d.Spellings()
	if d.DisplayName != "" {
		out = append(out, d.DisplayName)
	}
	for i := range d.Namesakes {
		out = append(append(out, d.Namesakes[i].Name), d.Namesakes[i].Aliases...)
	}
	return out
}

// namesakes returns the built-in tools that have a name of a tool. builtin finds one by its
// name or alias, ignoring case; it may be nil.
func namesakes(d *Definition, builtin func(name string) *Namesake) []Namesake {
	if builtin == nil {
		return nil
	}
	var out []Namesake
	for _, name := range append(d.Spellings(), ValidName(d.Name)) {
		n := builtin(name)
		if n == nil || d.Source == SourceBuiltin && n.Name == d.OriginalName() || slices.ContainsFunc(out, func(o Namesake) bool { return o.Name == n.Name }) {
			continue
		}
		out = append(out, *n)
	}
	return out
}

// Strictest returns the category of two that settings treat more strictly by default.
func Strictest(a, b Category) Category {
	order := []Category{CategoryRead, CategoryNetwork, CategoryWrite, CategoryCommand}
	rank := func(c Category) int {
		if i := slices.Index(order, c); i >= 0 {
			return i
		}
		return len(order)
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
