package builtin

import "slices"

// The presets that contain only some of the built-in tools.
const (
	presetReadOnly = "read-only"
	presetEdit     = "edit"
	presetTodo     = "todo"
)

// PresetMCP contains every tool that is not built in.
const PresetMCP = "mcp"

// Presets returns the names of all presets.
func Presets() []string { return []string{presetReadOnly, presetEdit, "full", presetTodo, PresetMCP} }

// InWorkspace reports whether the built-in tool with this canonical name works on the files
// of the workspace.
func InWorkspace(tool string) bool {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == tool })
	return i >= 0 && entries[i].preset != presetTodo && tool != "web_fetch"
}

// InPreset reports whether the built-in tool with this canonical name belongs
// to a preset. Every tool belongs to "full"; no tool belongs to an unknown
// preset.
func InPreset(preset, tool string) bool {
	if preset == "full" {
		return true
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == tool })
	return i >= 0 && (entries[i].preset == preset || preset == presetEdit && entries[i].preset == presetReadOnly)
}
