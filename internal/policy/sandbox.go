package policy

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

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
	// Changed returns the absolute paths of the files that a command starts with and that a
	// sandboxed program may have changed. argv has its program and the arguments that may name
	// code, and dir is the absolute folder where it runs. If nil, there are none.
	Changed func(argv []string, dir string) []string
	// Accept records that a person accepts these files as they were at a time. It is set if
	// Changed is.
	Accept func(ctx context.Context, paths []string, at time.Time) error
	// Uncleaned reports whether the workspace may still have files of a sandboxed program that
	// make other programs run commands. If nil, it has none.
	Uncleaned func() bool
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
	case strings.HasPrefix(r.Source, registry.APIPrefix), builtin != "" && builtin != shellToolName,
		r.Source == registry.SourceComposite,
		r.Category == string(registry.CategoryRead) && r.Source == registry.SourceBuiltin:
		about = "the tool starts no program"
	}
	if about == "" {
		return nil
	}
	return fmt.Errorf("decision sandbox does not apply here: %s", about)
}

// shellToolName is the name of the only built-in tool that starts programs.
const shellToolName = "run_shell_command"

// sandboxed returns the decision Sandbox and the reason for it, or Ask if the call
// cannot be confined.
func (f *facts) sandboxed(reason, who string) (Decision, string) {
	if missing := f.unconfinable(); missing != "" {
		return Ask, fmt.Sprintf("%s, which is not possible, so it requires confirmation: %s", who, missing)
	}
	return Sandbox, reason
}

// unconfinable returns the reason why a rule or an answer cannot confine the call;
// "" if it can.
func (f *facts) unconfinable() string {
	m := f.means
	switch {
	case f.tool.Program == "":
		return "it starts no program"
	case m.Off:
		return fmt.Sprintf("the setting sandbox.%s.mode is off", f.tool.Program)
	}
	return m.missing()
}

// inSandbox returns how the call runs in the sandbox because of a rule or answer.
func (f *facts) inSandbox(by string) Confinement {
	return Confinement{
		On:      true,
		By:      by,
		Outside: f.mayLeave(),
		Changed: f.changedPrograms,
		Allows:  f.means.allows(false),
	}
}

// mayLeave reports whether a person may let the call run again outside the sandbox.
func (f *facts) mayLeave() bool {
	return f.tool.Program == registry.ProgramShell && f.policy.Mode != ModeYolo && !f.person && !f.means.Require
}

// allows returns what a program may do in the sandbox; nil if that is not known.
func (m Means) allows(online bool) func() string {
	if m.Allows == nil {
		return nil
	}
	return func() string { return m.Allows(online) }
}

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
	// Outside is set if a person may be asked to run the call again without the
	// sandbox after it has failed because of it.
	Outside bool
	// Changed returns the files that the command starts with and that a sandboxed program may
	// have changed, for calls that may run outside as well. It may be nil.
	Changed func() []string
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

// ruled returns the decision of a matching rule and the reason. A rule with the
// decision Sandbox asks if the call cannot be confined.
func (f *facts) ruled(r *Rule) (Decision, string) {
	switch r.Decision {
	case Allow:
		return Allow, cmp.Or(r.Reason, "a rule allows it")
	case Deny:
		return Deny, f.because(r, cmp.Or(r.Reason, "a rule denies it"))
	case Sandbox:
		return f.sandboxed(cmp.Or(r.Reason, "a rule runs it in the sandbox"), "a rule runs it in the sandbox")
	}
	return Ask, f.because(r, cmp.Or(r.Reason, "a rule requires confirmation"))
}

// because adds to the reason of a rule that it applies because something is not known: what the
// call touches, or the value of its expression.
func (f *facts) because(r *Rule, reason string) string {
	if f.isBlindTo(r) {
		reason = f.underName(reason)
	}
	if r.When == nil || f.whole {
		return reason
	}
	if err := f.evaluate(r.When).err; err != nil {
		return fmt.Sprintf("%s; its condition counts as met because when failed: %v", reason, err)
	}
	return reason
}

// confinement returns how the call runs unless a rule or an answer confines it, and whether it may not
// run otherwise. No other code makes this decision.
func (f *facts) confinement() (c Confinement, required bool) {
	m := &f.means
	if f.tool.Program == "" {
		return c, false
	}
	auto, require, by, online := m.Auto, m.Require, m.Origin, false
	if f.policy.Mode == ModeYolo && (m.YoloAuto || m.YoloRequire) {
		online = true
		if !auto && !require {
			by = f.policy.modeOrigin()
		}
		if m.YoloRequire && !require {
			by = m.YoloOrigin
		}
		auto, require = auto || m.YoloAuto, require || m.YoloRequire
	}
	if !auto && !require {
		return Confinement{Allows: m.allows(false)}, false
	}
	if missing := m.missing(); missing != "" {
		return Confinement{By: by, Missing: missing}, require
	}
	return Confinement{
		On:      true,
		By:      by,
		Online:  online,
		Outside: f.mayLeave(),
		Changed: f.changedPrograms,
		Allows:  m.allows(online),
	}, require
}
