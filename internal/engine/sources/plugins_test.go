package sources

import (
	"path/filepath"
	"testing"

	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// A plugin of a trusted project runs only if the grant covers what was found: a manifest by its
// content, a script as a program.
func TestPluginsMustBeCovered(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "p")
	asProgram := trust.Executable(root, path)
	file := trust.File{Name: "p", Path: trust.Real(path), Sum: "1"}
	for name, tt := range map[string]struct {
		sum     string
		covered []trust.File
		usable  bool
	}{
		"a manifest":                  {"1", []trust.File{file}, true},
		"another manifest":            {"2", []trust.File{file}, false},
		"a script":                    {"", []trust.File{file, asProgram}, true},
		"a script that was no plugin": {"", []trust.File{file}, false},
		"a new script":                {"", nil, false},
	} {
		p := &discover.Plugin{Path: path, Sum: tt.sum}
		(&pluginFinder{}).checkGrant(p, &settings.Project{Root: root, Trusted: true, Covered: tt.covered})
		if usable := len(p.Problems) == 0; usable != tt.usable {
			t.Errorf("%s: usable: %t (%v)", name, usable, p.Problems)
		}
	}
	unreadable := &discover.Plugin{Path: path, Problems: []document.Problem{{Message: "not valid"}}}
	(&pluginFinder{}).checkGrant(unreadable, &settings.Project{Root: root, Trusted: true})
	if len(unreadable.Problems) != 1 {
		t.Errorf("a plugin that cannot be read: %v", unreadable.Problems)
	}
}
