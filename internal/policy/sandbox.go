package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Means is what the settings and the system say about confining one kind of
// program (spec section 14). The zero value never confines.
type Means struct {
	// Auto confines a call where that is possible in full, Require refuses it where
	// it is not. Origin says where this is set.
	Auto, Require bool
	Origin        string
	// Off says that the settings never confine this kind, not even for a rule.
	Off bool
	// YoloAuto, YoloRequire and YoloOrigin are the same for calls in ModeYolo.
	YoloAuto, YoloRequire bool
	YoloOrigin            string
	// Missing returns why programs of this kind cannot be confined in full; "" if
	// they can. It may ask the system. Allows describes what they may do then.
	Missing func() string
	Allows  func(online bool) string
}

// ValidateSandbox reports a rule with the decision sandbox that can match only tools
// that start no program of their own. canonical names the built-in tool behind a
// name or an alias.
func (r *Rule) ValidateSandbox(canonical func(string) string) error {
	if r.Decision != Sandbox {
		return nil
	}
	about := ""
	switch builtin := canonical(r.Tool); {
	case r.Server != "" || strings.HasPrefix(r.Source, registry.MCPPrefix):
		about = "a server's process runs before the call; sandbox.servers confines it"
	case builtin != "" && builtin != shellToolName, r.Source == registry.SourceComposite, r.Category == string(registry.CategoryRead) && r.Source == registry.SourceBuiltin:
		about = "the tool starts no program"
	}
	if about == "" {
		return nil
	}
	return fmt.Errorf("decision sandbox does not apply here: %s", about)
}

// shellToolName is the one built-in tool that starts programs.
const shellToolName = "run_shell_command"

func (m *Means) missing() string {
	if m.Missing == nil {
		return "there is no sandbox"
	}
	return m.Missing()
}

// Confinement says how a call runs, if it runs.
type Confinement struct {
	On bool
	// Online says that the network is on unless the settings say what it is.
	Online bool
	// By is the rule, setting or flag that confines the call.
	By string
	// Missing is why a call runs as it would without a sandbox although By asks for
	// one; "" if nothing asks for it.
	Missing string
	// Allows describes what the program may do in the sandbox; "" if it cannot be
	// confined. nil if the call starts no program.
	Allows func() string
}

// String says in one line how the call runs, and for one that is not confined what
// the sandbox would allow; "" if there is nothing to say.
func (c Confinement) String() string {
	switch {
	case c.On && c.Allows != nil:
		return fmt.Sprintf("on (%s): %s", c.By, c.Allows())
	case c.Missing != "":
		return fmt.Sprintf("not possible, so it runs without (%s): %s", c.By, c.Missing)
	case c.Allows == nil:
		return ""
	}
	if allows := c.Allows(); allows != "" {
		return "off; a rule with the decision sandbox would turn it on: " + allows
	}
	return ""
}

// means returns what there is for the program that the call would run.
func (d *decision) means() Means {
	if d.tool.Program == "" || d.policy.Means == nil {
		return Means{}
	}
	return d.policy.Means(d.tool.Program)
}

// ruled returns the decision of a rule that matches, with its reason. Where a
// call cannot be confined, a rule that confines asks.
func (d *decision) ruled(r *Rule) (Decision, string) {
	switch r.Decision {
	case Allow:
		return Allow, cmp.Or(r.Reason, "a rule allows it")
	case Deny:
		return Deny, cmp.Or(r.Reason, "a rule denies it")
	case Sandbox:
		m := d.means()
		missing := ""
		if d.tool.Program == "" {
			missing = "it starts no program"
		} else if m.Off {
			missing = fmt.Sprintf("the setting sandbox.%s.mode is off", d.tool.Program)
		} else {
			missing = m.missing()
		}
		if missing != "" {
			return Ask, fmt.Sprintf("a rule runs it in the sandbox, which is not possible, so it requires confirmation: %s", missing)
		}
		return Sandbox, cmp.Or(r.Reason, "a rule runs it in the sandbox")
	}
	return Ask, cmp.Or(r.Reason, "a rule requires confirmation")
}

// confine says how the call runs; ruled is what rules, approvals and defaults said.
// It is the only place that decides this.
func (d *decision) confine(v, ruled Verdict) Verdict {
	if v.Decision == Deny || d.tool.Program == "" {
		return v
	}
	m := d.means()
	allows := func(online bool) func() string {
		if m.Allows == nil {
			return nil
		}
		return func() string { return m.Allows(online) }
	}
	if ruled.Decision == Sandbox { // also after a question that the tool itself asks
		v.Confine = Confinement{On: true, By: ruled.Origin, Allows: allows(false)}
		return v
	}
	auto, require, by, online := m.Auto, m.Require, m.Origin, false
	if d.policy.Mode == ModeYolo && (m.YoloAuto || m.YoloRequire) {
		online = true
		if !auto && !require {
			by = d.policy.modeOrigin()
		}
		if m.YoloRequire && !require {
			by = m.YoloOrigin
		}
		auto, require = auto || m.YoloAuto, require || m.YoloRequire
	}
	if !auto && !require {
		v.Confine.Allows = allows(false)
		return v
	}
	missing := m.missing()
	switch {
	case missing == "":
		v.Confine = Confinement{On: true, By: by, Online: online, Allows: allows(online)}
	case require:
		return Verdict{Decision: Deny, Origin: by, Commands: v.Commands, Reason: "it must run in the sandbox, which is not possible: " + missing}
	default:
		v.Confine = Confinement{By: by, Missing: missing}
	}
	return v
}
