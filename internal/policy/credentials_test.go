package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// The places of credentials are not looked for when a tool of a server is called, which cannot leave
// anything out.
func TestCredentialsOfOtherTools(t *testing.T) {
	p := Policy{Workspace: "/home", Credentials: func() func(string) string {
		t.Error("looked for")
		return nil
	}}
	if v := p.Decide(t.Context(), mcpTool("s", "t", "t"), registry.Call{}); v.Hides != nil || v.HidesKey != "" {
		t.Error("something is hidden")
	}
}

func TestCredentials(t *testing.T) {
	asked := func(path string) string {
		if path == "/home/.ssh" || strings.HasPrefix(path, "/home/.ssh/") {
			return "is where credentials are kept"
		}
		return ""
	}
	allow := func(path string) Rule { return Rule{Tool: "grep", Path: path, Decision: Allow} }
	tests := []struct {
		name          string
		rules         []Rule
		mode          Mode
		path          string
		want          Decision
		hidden, shown []string
	}{
		{"by default", nil, "", ".ssh/id", Ask, []string{".ssh/other"}, []string{".ssh/id", "a"}},
		{"named folder", nil, "", ".ssh", Ask, nil, []string{".ssh/id"}},
		{"elsewhere", nil, "", "src", Allow, []string{".ssh", ".ssh/id"}, []string{"src/a"}},
		{"rule without a path", []Rule{{Tool: "grep", Decision: Allow}}, "", ".ssh/id", Ask, []string{".ssh/other"}, nil},
		{"rule with its path", []Rule{{Tool: "grep", Decision: Allow}, allow(".ssh/**")}, "", ".ssh/id", Allow, nil, []string{".ssh/id", ".ssh/other"}},
		{"rule with its path, searched from above", []Rule{allow(".ssh/config")}, "", ".", Allow, []string{".ssh/id"}, []string{".ssh/config"}},
		{"denied before", []Rule{{Path: ".ssh/id", Decision: Deny}, allow(".ssh/**")}, "", ".", Allow, []string{".ssh/id"}, []string{".ssh/config"}},
		{"rule for another tool", []Rule{{Tool: "read_file", Path: ".ssh/**", Decision: Allow}}, "", ".ssh/id", Ask, []string{".ssh/config"}, nil},
		{"denied", []Rule{{Tool: "grep", Decision: Deny}}, "", ".ssh/id", Deny, nil, nil},
		{"yolo", nil, ModeYolo, ".ssh/id", Allow, []string{".ssh/other"}, []string{".ssh/id"}},
		{"yolo searches", nil, ModeYolo, ".", Allow, []string{".ssh/id"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Policy{Rules: tt.rules, Mode: tt.mode, Workspace: "/home", Credentials: guarding(asked)}
			v := p.Decide(t.Context(), pathTool("grep", registry.CategoryRead, tt.path), registry.Call{})
			if v.Decision != tt.want {
				t.Fatalf("%v (%s), want %v", v.Decision, v.Reason, tt.want)
			}
			for _, path := range tt.hidden {
				if !v.Hides(path) {
					t.Errorf("%s is shown", path)
				}
			}
			for _, path := range tt.shown {
				if v.Hides(path) {
					t.Errorf("%s is hidden", path)
				}
			}
		})
	}
	p := Policy{Workspace: "/home", Credentials: guarding(asked)}
	v := p.Decide(t.Context(), pathTool("upload", registry.CategoryNetwork, ".ssh/id"), registry.Call{})
	if v.Decision != Ask {
		t.Errorf("sending: %v", v.Decision)
	}
	p.Rules = []Rule{{Tool: "upload", Decision: Allow}}
	if v = p.Decide(t.Context(), pathTool("upload", registry.CategoryNetwork, ".ssh/id"), registry.Call{}); v.Decision != Ask || !v.ByPath || len(v.Scopes) > 0 {
		t.Errorf("sending, allowed without the path: %+v", v)
	}
}

// A workspace behind a link has the credentials of both its paths.
func TestCredentialsBehindLink(t *testing.T) {
	real, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]string{"by the link": filepath.Join(link, "k"), "by the folder": filepath.Join(real, "k")} {
		p := &Policy{Workspace: filepath.ToSlash(link), Credentials: guarding(func(path string) string {
			if path == place {
				return "is a key"
			}
			return ""
		})}
		for file, want := range map[string]Decision{"k": Ask, "a": Allow} {
			if v := p.Decide(t.Context(), pathTool("read_file", registry.CategoryRead, file), registry.Call{}); v.Decision != want {
				t.Errorf("%s %s: %s (%s)", file, name, v.Decision, v.Reason)
			}
		}
	}
}

// guarding is a policy's Credentials that recognizes what a function does.
func guarding(why func(path string) string) func() func(string) string {
	return func() func(string) string { return why }
}
