// Package middleware holds what goes around the run of a tool: the limit on
// output, the cache of results, retries (spec section 8.6). Each is a
// [registry.Middleware] made by the Wrap method of a struct of options.
// cmd/toolreg puts them into an exec.Executor in the order of that section.
package middleware

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/registry"
)

// ReadOnly reports whether a tool changes nothing, as far as anybody says whose
// word counts: its category, and the readOnlyHint of a server that the settings
// trust.
func ReadOnly(t *registry.Tool) bool {
	if !t.IsMCP() {
		return t.Category == registry.CategoryRead
	}
	return t.Trusted && (t.Category == registry.CategoryRead || hint(t, "readOnlyHint"))
}

// Repeatable reports whether a call of a tool may be made twice: a tool that
// only reads, and one that a trusted server calls idempotent.
func Repeatable(t *registry.Tool) bool {
	return ReadOnly(t) || t.IsMCP() && t.Trusted && hint(t, "idempotentHint")
}

// hint reads one annotation (MCP revision 2025-11-25).
func hint(t *registry.Tool, name string) bool {
	var hints map[string]json.RawMessage
	return json.Unmarshal(t.Annotations, &hints) == nil && string(hints[name]) == "true"
}
