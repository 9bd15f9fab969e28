package policy

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

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

// inSandbox returns how the call runs in the sandbox. Only a shell tool may run again outside it.
func (f *facts) inSandbox(by string, online bool) Confinement {
	return Confinement{
		On:     true,
		By:     by,
		Online: online,
		Outside: f.tool.Program == registry.ProgramShell && f.policy.Mode != ModeYolo &&
			!f.person && !f.means.Require,
		Changed: f.changedPrograms,
		Allows:  f.means.allows(online),
	}
}

// confinement returns how the call runs if no rule or answer confines it, and whether it must not
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
	return f.inSandbox(by, online), require
}
