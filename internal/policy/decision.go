package policy

import (
	"encoding/json"
	"fmt"
)

// Decision says whether a call may run. The zero value is Ask, so that a missing
// decision never allows.
type Decision int

// The possible decisions.
const (
	Ask Decision = iota
	Allow
	Deny
	// Sandbox runs a call in the sandbox, without asking. Only rules make this
	// decision; if the sandbox is unavailable, it becomes Ask.
	Sandbox
)

// String returns the name of the decision, as used in settings.
func (d Decision) String() string {
	switch d {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	case Sandbox:
		return "sandbox"
	}
	return "ask"
}

// MarshalJSON encodes the decision as its name.
func (d Decision) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ParseDecision parses the name of a decision.
func ParseDecision(s string) (Decision, error) {
	switch s {
	case "ask":
		return Ask, nil
	case "allow":
		return Allow, nil
	case "deny":
		return Deny, nil
	case "sandbox":
		return Sandbox, nil
	}
	return Deny, fmt.Errorf("unknown decision %q; use allow, sandbox, ask or deny", s)
}

// stricter returns the stricter of two decisions.
func stricter(a, b Decision) Decision {
	rank := func(d Decision) int {
		switch d {
		case Allow:
			return 0
		case Sandbox:
			return 1
		case Deny:
			return 3
		}
		return 2
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// Mode is the setting approvalMode. The zero value is ModeDefault.
type Mode string

// The approval modes.
const (
	ModeDefault  Mode = "default"
	ModeAutoEdit Mode = "auto-edit" // allows edits inside the workspace
	ModePlan     Mode = "plan"      // denies everything except reading
	ModeYolo     Mode = "yolo"      // allows calls that would ask, as --yes does
)

// ParseMode parses a mode; "" means ModeDefault. It also accepts the spellings
// "autoEdit" and "auto_edit", which other programs use.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return ModeDefault, nil
	case "autoEdit", "auto_edit":
		return ModeAutoEdit, nil
	case ModeDefault, ModeAutoEdit, ModePlan, ModeYolo:
		return m, nil
	}
	return ModeDefault, fmt.Errorf("unknown approval mode %q; use default, auto-edit, plan or yolo", s)
}
