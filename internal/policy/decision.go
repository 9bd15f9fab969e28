package policy

import (
	"encoding/json"
	"fmt"
)

// Decision is the answer to whether a call may run. The zero value asks, so
// that a gap never allows.
type Decision int

// The decisions of spec section 8.3.
const (
	Ask Decision = iota
	Allow
	Deny
	// Sandbox runs a call confined, without asking. Only rules make this decision,
	// and where it is not possible it becomes Ask.
	Sandbox
)

// String returns the word that settings use.
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

// MarshalJSON encodes the decision as its word.
func (d Decision) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// ParseDecision reads a decision as settings write it.
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

// The modes of spec section 8.3.
const (
	ModeDefault  Mode = "default"
	ModeAutoEdit Mode = "auto-edit" // edits inside the workspace are not asked about
	ModePlan     Mode = "plan"      // everything but reading is denied
	ModeYolo     Mode = "yolo"      // what would ask is allowed, as with --yes
)

// ParseMode reads a mode; "" is ModeDefault. The reference's spelling
// "autoEdit" is accepted.
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
