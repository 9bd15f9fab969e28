package settings

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

const overridesKey = "overrides"

// fixes reports whether an entry of overrides fixes a param or hides something.
func fixes(override *jsonx.Value) bool {
	if override.Get("hidden").Is(jsonx.True) {
		return true
	}
	params := override.Get("params")
	if params == nil {
		return false
	}
	for _, p := range params.Members {
		if p.Value.Get("const") != nil || p.Value.Get("hidden").Is(jsonx.True) {
			return true
		}
	}
	return false
}

// isGuarded reports whether a later scope cannot replace an entry: a project must
// not unfix, show or rename what the user's settings fix or hide.
func isGuarded(setting string, was, now Named) bool {
	return setting == overridesKey && now.Origin.Scope == ScopeProject && was.Origin.Scope < ScopeProject && fixes(was.Value)
}

// guardedOverrides reports the project's overrides that have no effect because they
// would replace guarded ones.
func (m *merged) guardedOverrides() []registry.Diagnostic {
	var out []registry.Diagnostic
	inForce := map[string]Named{}
	for _, n := range m.named(overridesKey) {
		inForce[n.Name] = n
	}
	for _, e := range m.entries[m.index.Row(overridesKey)] {
		for _, f := range e.node.Members {
			o := e.origin
			o.Line = int(f.Line)
			if n := inForce[f.Name]; isGuarded(overridesKey, n, Named{Origin: o}) {
				out = append(out, registry.Diagnostic{Severity: registry.SeverityWarning, Code: "override_ignored",
					Message: fmt.Sprintf("%s: overrides.%s is ignored, because %s fixes or hides something of that tool and a project cannot change that", o, f.Name, n.Origin)})
			}
		}
	}
	return out
}
