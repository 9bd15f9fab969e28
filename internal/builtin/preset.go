package builtin

import "slices"

// The presets of spec section 6.1 that contain fewer than all tools.
const (
	presetReadOnly = "read-only"
	presetEdit     = "edit"
	presetTodo     = "todo"
)

// PresetMCP contains the tools of MCP servers and no built-in tools.
const PresetMCP = "mcp"

// Presets returns the names of the presets of spec section 6.1.
func Presets() []string { return []string{presetReadOnly, presetEdit, "full", presetTodo, PresetMCP} }

// InPreset reports whether a built-in tool, by its canonical name, belongs to a
// preset. Every tool belongs to "full"; none to an unknown preset.
func InPreset(preset, tool string) bool {
	if preset == "full" {
		return true
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == tool })
	return i >= 0 && (entries[i].preset == preset || preset == presetEdit && entries[i].preset == presetReadOnly)
}
