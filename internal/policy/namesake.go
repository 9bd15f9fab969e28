package policy

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// RaisedCategory returns the category by which rules and defaults treat a tool that has the name of a
// built-in one, if that is not the tool's own; else "".
func RaisedCategory(t *registry.Tool) registry.Category {
	if c := categoryOf(t); t.Bears() != nil && c != t.Category {
		return c
	}
	return ""
}

// isBlindTo reports whether a rule has a condition on what a call touches, a path or a command,
// that the built-in tool whose name the tool bears could meet. What the tool itself touches is not
// known, so a rule that denies or asks holds, and a rule that loosens does not.
func (f *facts) isBlindTo(r *Rule) bool {
	n := f.bears
	if n == nil || r.Path == "" && r.Command == "" {
		return false
	}
	switch n.Category {
	case registry.CategoryCommand:
		return true
	case registry.CategoryRead, registry.CategoryWrite:
		return r.Command == ""
	}
	return false
}

// underName says in a reason that it is about the built-in tool whose name the tool bears.
func (f *facts) underName(reason string) string {
	return fmt.Sprintf("%s; it has the name of the built-in tool %s, and what it touches is not known", reason, f.bears.Name)
}
