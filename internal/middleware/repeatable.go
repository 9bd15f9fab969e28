// Package middleware implements the output limit, the cache of results, and
// retries. The Wrap method of each type is a [registry.Middleware], which package
// engine adds to an exec.Executor.
package middleware

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/registry"
)

// ReadOnly reports whether a tool changes nothing, according to its category or to
// the readOnlyHint of a trusted server. A composite is never read-only: whatever
// its category, its steps may change something, and each step is decided on, cached
// and retried by itself.
func ReadOnly(t *registry.Tool) bool {
	if t.Source == registry.SourceComposite {
		return false
	}
	if !t.OfServer() {
		return t.Category == registry.CategoryRead
	}
	return t.Trusted && (t.Category == registry.CategoryRead || hint(t, "readOnlyHint"))
}

// Repeatable reports whether a call of a tool may be repeated: the tool only
// reads, or a trusted server declares it idempotent.
func Repeatable(t *registry.Tool) bool {
	return ReadOnly(t) || t.OfServer() && t.Trusted && hint(t, "idempotentHint")
}

// hint returns the value of one boolean annotation (MCP revision 2025-11-25).
func hint(t *registry.Tool, name string) bool {
	var hints map[string]json.RawMessage
	return json.Unmarshal(t.Annotations, &hints) == nil && string(hints[name]) == "true"
}
