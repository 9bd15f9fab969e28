package lock

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// The file of a project says to whom a name belongs whether or not it is trusted, and comes
// before the user's. Only what the person trusts is her own.
func TestOwnersOfSeveralFiles(t *testing.T) {
	file := func(server string, user bool) *File {
		return &File{Names: map[string]string{"x": server, "only_" + server: server}, user: user}
	}
	both := map[string]string{"x": "a", "only_a": "a", "only_b": "b"}
	for name, row := range map[string]struct {
		set      *Set
		all, own map[string]string
		hasOwn   bool
	}{
		"none":                     {nil, map[string]string{}, map[string]string{}, false},
		"a project that is not":    {&Set{project: file("a", false)}, map[string]string{"x": "a", "only_a": "a"}, map[string]string{}, false},
		"a trusted project":        {&Set{project: file("a", false), trusted: true}, map[string]string{"x": "a", "only_a": "a"}, map[string]string{"x": "a", "only_a": "a"}, true},
		"the user's":               {&Set{user: file("b", true)}, map[string]string{"x": "b", "only_b": "b"}, map[string]string{"x": "b", "only_b": "b"}, true},
		"one not trusted and hers": {&Set{project: file("a", false), user: file("b", true)}, both, map[string]string{"x": "b", "only_b": "b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all, own, hasOwn := row.set.Owners()
			if diff := cmp.Diff([]any{row.all, row.own, row.hasOwn}, []any{all, own, hasOwn}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Beside the user's file, that of a project that is not trusted refuses what has changed
// since, and neither refuses nor accepts what it does not have.
func TestFilesOfUntrustedProjectRefuse(t *testing.T) {
	tool := func(name, description string) *registry.Tool {
		return &registry.Tool{Definition: registry.Definition{Name: name, ServerTool: name, Server: "s", Source: "mcp:s", Description: description}}
	}
	file := func(tools ...*registry.Tool) *File {
		var r Recorder
		for _, tool := range tools {
			r.Filter(tool)
		}
		return r.File()
	}
	project := file(tool("same", "a"), tool("drifted", "a"), tool("theirs", "a"))
	users := file(tool("same", "a"), tool("drifted", "b"), tool("mine", "a"), tool("old", "a"))
	users.user = true
	s := &Set{project: project, user: users}
	filter := s.Filter(nil)
	for name, passes := range map[string]bool{"same a": true, "drifted b": false, "drifted a": false, "theirs a": false, "mine a": true, "old b": false, "new a": false} {
		if got := filter(tool(name[:len(name)-2], name[len(name)-1:])) == nil; got != passes {
			t.Errorf("%s passes: %v", name, got)
		}
	}
	for _, description := range []string{"a", "b"} { // of the project's file, of hers
		if got := s.Changed(tool("drifted", description)); len(got) == 0 {
			t.Errorf("that a file has another than %s is not reported", description)
		}
	}
	s.project.Tools = append(s.project.Tools, Entry{Name: "x", Source: registry.SourceBuiltin})
	if got := s.Servers(); !slices.Equal(got, []string{"s"}) {
		t.Errorf("servers %q", got)
	}
	alone := (&Set{project: project}).Filter(nil)
	if alone(tool("mine", "a")) == nil || alone(tool("theirs", "a")) != nil {
		t.Error("without the user's file, the project's must decide alone")
	}
}
