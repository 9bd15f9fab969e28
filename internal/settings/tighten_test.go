package settings

import (
	"fmt"
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
		{"frees a server", "servers: {s: {mode: auto}}", "servers: {s: {mode: off}}", "sandbox.servers.s", `{"mode":"auto"}`, "sandbox.servers.s.mode is ignored"},
		{"opens a server", "servers: {s: {mode: auto}}", "servers: {s: {mode: auto, network: all}}", "sandbox.servers.s", `{"mode":"auto"}`, "sandbox.servers.s.network is ignored"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := table.NewIndex()
			layers := []*layers.Layer{layers.Read(x, ScopeUser, "u.yaml", []byte("sandbox: {"+test.user+"}")), layers.Read(x, ScopeProject, "p.yaml", []byte("sandbox: {"+test.project+"}"))}
			for _, l := range layers {
				if len(l.Problems) > 0 {
					t.Fatal(l.Problems)
				}
			}
			m := merge(x, layers)
			said := ""
			for _, d := range m.tighten() {
				said += d.Message
			}
			if (test.ignored == "") != (said == "") || !strings.Contains(said, test.ignored) {
				t.Errorf("diagnostic %q, want %q", said, test.ignored)
			}
			s := &Settings{merged: m}
			got := ""
			if name, ok := strings.CutPrefix(test.key, "sandbox.servers."); ok {
				for _, n := range s.RawNamed("sandbox.servers") {
					if n.Name == name {
						got = string(n.JSON())
					}
				}
			} else {
				got = string(s.Setting(test.key).JSON())
			}
			if got != test.want {
				t.Errorf("%s = %s, want %s", test.key, got, test.want)
			}
		})
	}
}

// A program of the person's gets neither the variables nor the sandbox of a project.
func TestSettingsForPrograms(t *testing.T) {
	b := newSandbox(t)
	o := b.options()
	o.TrustProject = true
	b.user("settings.yaml", "env: {A: hers, B: hers}\nsandbox: {hooks: {mode: auto}}\n")
	b.projectFile(".toolreg/settings.yaml", "env: {A: theirs, C: theirs}\ninheritEnv: true\nsandbox: {hooks: {mode: require}, mode: auto}\n")
	s := b.load(o)
	for scope, want := range map[Scope]string{
		ScopeProject: "A=theirs B=hers C=theirs true require auto", ScopeUser: "A=hers B=hers false auto off", ScopeFile: "A=hers B=hers false auto off",
	} {
		set, got := s.For(scope), ""
		for _, p := range set.Env {
			got += p.Name + "=" + p.Value + " "
		}
		got += fmt.Sprint(set.InheritEnv, " ", set.Setting("sandbox.hooks.mode").Value.Text(), " ", set.Setting("sandbox.mode").Value.Text())
		if got != want {
			t.Errorf("%s: %s, want %s", scope, got, want)
		}
	}
	b.projectFile(".toolreg/settings.yaml", "names: {servers: first}\n")
	if s := b.load(o); s.For(ScopeUser) != s {
		t.Error("there is no difference, but it has been looked for again")
	}
}
