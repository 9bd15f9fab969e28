package merge

import (
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// A project may tighten the sandbox but never loosen it.
func TestProjectOnlyTightensTheSandbox(t *testing.T) {
	tests := []struct {
		name, user, project, key, want string
		ignored                        string // part of the diagnostic; "" means no diagnostic
	}{
		{"requires", "", "mode: require", "sandbox.mode", `"require"`, ""},
		{"turns off", "mode: auto", "mode: off", "sandbox.mode", `"auto"`, "p.yaml:1: sandbox.mode is ignored"},
		{"turns a kind off", "mode: auto", "shell: {mode: off}", "sandbox.shell.mode", "null", "sandbox.shell.mode is ignored"},
		{"turns a kind off that is not on", "", "shell: {mode: off}", "sandbox.shell.mode", "null", "sandbox.shell.mode is ignored"},
		{"turns yolo off", "", "yolo: off", "sandbox.yolo", `"auto"`, `without it the value is "auto" (default)`},
		{"requires yolo", "", "yolo: require", "sandbox.yolo", `"require"`, ""},
		{"opens the network", "", "shell: {network: all}", "sandbox.shell.network", `"loopback"`, "sandbox.shell.network is ignored"},
		{"closes the network", "", "shell: {network: none}", "sandbox.shell.network", `"none"`, ""},
		{"takes hosts away", "shell: {network: [a, b]}", "shell: {network: [b]}", "sandbox.shell.network", `["b"]`, ""},
		{"adds a host", "shell: {network: [a]}", "shell: {network: [a, b]}", "sandbox.shell.network", `["a"]`, "u.yaml:1"},
		{"adds a folder", "shell: {write: [/a]}", "shell: {write: [/a, /b]}", "sandbox.shell.write", `["/a"]`, "sandbox.shell.write is ignored"},
		{"takes a folder away", "shell: {write: [/a, /b]}", "shell: {write: [/b]}", "sandbox.shell.write", `["/b"]`, ""},
		{"confines a server", "", "servers: {s: {mode: auto, read: [/x]}}", "sandbox.servers.s", `{"mode":"auto","read":["/x"]}`, ""},
		{"empties a server's entry", "servers: {s: {mode: auto, network: none}}", "servers: {s: {}}", "sandbox.servers.s", `{"mode":"auto","network":"none"}`, ""},
		{"tightens one of a server's fields", "servers: {s: {mode: auto, read: [/x, /y]}}", "servers: {s: {read: [/x], mode: require}}", "sandbox.servers.s", `{"mode":"require","read":["/x"]}`, ""},
		{"frees a server", "servers: {s: {mode: auto}}", "servers: {s: {mode: off}}", "sandbox.servers.s", `{"mode":"auto"}`, "sandbox.servers.s.mode is ignored"},
		{"opens a server", "servers: {s: {mode: auto}}", "servers: {s: {mode: auto, network: all}}", "sandbox.servers.s", `{"mode":"auto"}`, "sandbox.servers.s.network is ignored"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := table.NewIndex()
			both := []*layers.Layer{
				layers.Read(x, layers.ScopeUser, "u.yaml", []byte("sandbox: {"+test.user+"}")),
				layers.Read(x, layers.ScopeProject, "p.yaml", []byte("sandbox: {"+test.project+"}")),
			}
			for _, l := range both {
				if len(l.Problems) > 0 {
					t.Fatal(l.Problems)
				}
			}
			m := Of(x, both)
			said := ""
			for _, d := range m.Tighten() {
				said += d.Message
			}
			if (test.ignored == "") != (said == "") || !strings.Contains(said, test.ignored) {
				t.Errorf("diagnostic %q, want %q", said, test.ignored)
			}
			got := ""
			if name, ok := strings.CutPrefix(test.key, "sandbox.servers."); ok {
				for _, n := range m.Named("sandbox.servers") {
					if n.Name == name {
						got = string(n.JSON())
					}
				}
			} else if e, ok := m.Last(test.key); ok {
				got = string(e.Value.JSON())
			} else {
				got = string(m.Index.Row(test.key).DefaultValue().JSON())
			}
			if got != test.want {
				t.Errorf("%s = %s, want %s", test.key, got, test.want)
			}
		})
	}
}
