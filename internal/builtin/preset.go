package builtin

import "slices"

// Presets returns the names of the presets of spec section 6.1.
func Presets() []string { return []string{"read-only", "edit", "full", "todo"} }

// InPreset reports whether a built-in tool, by its canonical name, belongs to a
// preset. Every tool belongs to "full"; no tool to a name that is no preset.
func InPreset(preset, tool string) bool {
	read := []string{"read_file", "list_directory", "glob", "grep", webFetchName}
	edit := []string{"write_file", "edit", patchName, shellName, processName}
	switch preset {
	case "read-only":
		return slices.Contains(read, tool)
	case "edit":
		return slices.Contains(read, tool) || slices.Contains(edit, tool)
	case "todo":
		return tool == todoReadName || tool == todoWriteName
	}
	return preset == "full"
}
