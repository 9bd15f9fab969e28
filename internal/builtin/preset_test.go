package builtin

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

func TestPresets(t *testing.T) {
	want := map[string][]string{
		"read-only": {"glob", "grep", "list_directory", "read_file", "web_fetch"},
		"edit":      {"apply_patch", "edit", "glob", "grep", "list_directory", "process", "read_file", "run_shell_command", "web_fetch", "write_file"},
		"full":      tooltest.Sorted(Names()),
		"todo":      {"todo_read", "todo_write"},
		"mcp":       {},
	}
	for _, preset := range Presets() {
		got := tooltest.Sorted(slices.DeleteFunc(Names(), func(name string) bool { return !InPreset(preset, name) }))
		if diff := cmp.Diff(want[preset], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", preset, diff)
		}
	}
	if InPreset("nope", "read_file") {
		t.Error("an unknown preset contains a tool")
	}
}
