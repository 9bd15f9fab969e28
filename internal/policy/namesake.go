package policy

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/registry"
)

// bears returns the built-in tool whose name the tool has although it is another one; nil if
// there is none. Such a tool is never decided more loosely than the built-in tool would be.
func (d *decision) bears() *registry.Namesake { return d.tool.Bears() }

// RaisedCategory returns the category by which rules and defaults treat a tool that has the name of a
// built-in one, if that is not the tool's own; else "".
func RaisedCategory(t *registry.Tool) registry.Category {
	d := decision{tool: t}
	if c := d.category(); d.bears() != nil && c != t.Category {
		return c
	}
	return ""
}

// isBlindTo reports whether a rule has a condition on what a call touches, a path or a command,
// that the built-in tool whose name the tool bears could meet. What the tool itself touches is not
// known, so a rule that denies or asks holds, and a rule that loosens does not.
func (d *decision) isBlindTo(r *Rule) bool {
	n := d.bears()
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
func (d *decision) underName(reason string) string {
	return fmt.Sprintf("%s; it has the name of the built-in tool %s, and what it touches is not known", reason, d.bears().Name)
}

// bannedName denies a tool that has the name of the shell tool if any command is banned: what it
// runs is not known.
func (d *decision) bannedName() (Verdict, bool) {
	n := d.bears()
	if n == nil || n.Name != shellToolName || len(d.policy.Banned) == 0 {
		return Verdict{}, false
	}
	b := d.policy.Banned[0]
	return Verdict{Decision: Deny, Origin: b.Setting,
		Reason: d.underName(fmt.Sprintf("setting shell.banned denies %q", b.Value)) +
			fmt.Sprintf("; give the tool another name where it is defined, or with overrides.%s.name", d.tool.Name)}, true
}
