package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Means describes whether and how programs of one kind can be confined, according
// to the settings and the system. The zero value never confines.
type Means struct {
	// Auto confines calls if full confinement is available. Require also refuses
	// them if it is not. Origin says where this is set.
	Auto, Require bool
	Origin        string
	// Off is set if the settings forbid confining this kind, even for a rule.
	Off bool
	// YoloAuto, YoloRequire and YoloOrigin have the same meaning for calls in
	// ModeYolo.
	YoloAuto, YoloRequire bool
	YoloOrigin            string
	// Missing returns the reason why full confinement is unavailable, or "" if it
	// is available. It may query the system. Allows describes what a confined
	// program may do.
	Missing func() string
	Allows  func(online bool) string
}

// ValidateSandbox returns an error if the rule has the decision Sandbox but can
// only match tools that start no program of their own. canonical returns the
// built-in tool for a name or alias.
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

// shellToolName is the name of the only built-in tool that starts programs.
const shellToolName = "run_shell_command"

func (m *Means) missing() string {
	if m.Missing == nil {
		return "no sandbox is available"
	}
	return m.Missing()
}

// Confinement says how a call runs if it is allowed.
type Confinement struct {
	On bool
	// Online is set if the network is enabled unless the settings say otherwise.
	Online bool
	// By is the rule, setting or flag that requests the sandbox.
	By string
	// Missing is the reason why the call runs without a sandbox although By
	// requests one; "" if none is requested.
	Missing string
	// Allows describes what the program may do in the sandbox; it returns "" if it
	// cannot be confined. It is nil if the call starts no program.
	Allows func() string
}

// String describes in one line how the call runs. If it is not confined, the line
// says what the sandbox would allow. It is "" for calls that start no program.
func (c Confinement) String() string {
	switch {
	case c.On && c.Allows != nil:
		return fmt.Sprintf("on (%s): %s", c.By, c.Allows())
	case c.Missing != "":
		return fmt.Sprintf("unavailable, running without it (%s): %s", c.By, c.Missing)
	case c.Allows == nil:
		return ""
	}
	if allows := c.Allows(); allows != "" {
		return "off; a rule with the decision sandbox would turn it on: " + allows
	}
	return ""
}

// means returns the means to confine the program that the call would run.
func (d *decision) means() Means {
	if d.tool.Program == "" || d.policy.Means == nil {
		return Means{}
	}
	return d.policy.Means(d.tool.Program)
}

// ruled returns the decision of a matching rule and the reason. A rule with the
// decision Sandbox asks if the call cannot be confined.
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

// confine decides whether the call runs in the sandbox. ruled is the verdict of
// rules, approvals and defaults. No other code makes this decision.
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
	if ruled.Decision == Sandbox { // even if the tool itself asks a question first
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
