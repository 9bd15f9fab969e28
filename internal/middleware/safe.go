// Package middleware implements what runs around a tool: the output limit, the
// cache of results, and retries (spec section 8.6). Each is a
// [registry.Middleware] returned by the Wrap method of a struct of options.
// Package session adds them to an exec.Executor in the order of that section.
package middleware

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/registry"
)

// ReadOnly reports whether a tool changes nothing, according to its category or
// to the readOnlyHint of a trusted server. A composite is never read-only: its
// steps may change something whatever its category, policy decides on each of
// them, and each is cached and retried on its own.
func ReadOnly(t *registry.Tool) bool {
	if t.Source == registry.SourceComposite {
		return false
	}
	if !t.IsMCP() {
		return t.Category == registry.CategoryRead
	}
	return t.Trusted && (t.Category == registry.CategoryRead || hint(t, "readOnlyHint"))
}

// Repeatable reports whether a call of a tool may be repeated: the tool only
// reads, or a trusted server declares it idempotent.
func Repeatable(t *registry.Tool) bool {
	return ReadOnly(t) || t.IsMCP() && t.Trusted && hint(t, "idempotentHint")
}

// hint reads one annotation (MCP revision 2025-11-25).
func hint(t *registry.Tool, name string) bool {
	var hints map[string]json.RawMessage
	return json.Unmarshal(t.Annotations, &hints) == nil && string(hints[name]) == "true"
}
