package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// Paths of rules count from the project root, those of rules that deny from the workspace too, whatever links lead to it.
func TestRulesInAnotherWorkspace(t *testing.T) {
	dir := realPath(t.TempDir())
	for _, name := range []string{"secret", "sub/secret", "src", "elsewhere/src"} {
		if err := os.MkdirAll(filepath.Join(dir, "p", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"p/link": "secret", "alias": "p", "p/vault": "elsewhere", "p/out": "elsewhere/src"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	deny, allow := func(path string) Rule { return Rule{Path: path, Decision: Deny} }, func(path string) Rule { return Rule{Path: path, Decision: Allow} }
	for _, tt := range []struct {
		workspace string
		rule      Rule
		path      string
		want      Decision
	}{
		{"p", deny("secret/**"), "secret/x", Deny},
		{".", deny("secret/**"), "p/secret/x", Deny},
		{".", deny("secret/**"), "secret/x", Deny},
		{".", deny("secret/**"), "p/sub/x", Ask},
		{"p", deny("secret/**"), "\u017fecret/x", Deny}, // the same file on macOS
		{"p", deny("\u017fecret/**"), "SECRET/x", Deny},
		{"p", deny("src/?.txt"), "src/\u00df.txt", Deny},
		{"p", deny("cafe\u0301/**"), "CAF\u00c9/x", Deny},
		{"p", deny("secret/**"), "\u0455ecret/x", Ask}, // a letter of another alphabet is another file
		{"p", allow("src/**"), "\u017frc/x", Ask},
		{"p/secret", deny("secret/**"), "x", Deny},
		{"p/sub", deny("secret/**"), "secret/x", Deny},
		{"p/sub", deny("secret/**"), "x", Ask},
		{"p/link", deny("secret/**"), "x", Deny},
		{"p/elsewhere", deny("vault/**"), "x", Deny},
		{"p", deny("vault/**"), "elsewhere/x", Deny},
		{"p", allow("vault/**"), "elsewhere/x", Ask},
		{".", deny("link/new/**"), "p/secret/new/x", Deny}, // which does not exist yet
		{"alias", deny("secret/**"), "secret/x", Deny},
		{"alias/secret", deny("secret/**"), "x", Deny},
		{"p/secret", deny(dir + "/alias/secret/**"), "x", Deny},
		{"p", allow("src/**"), "src/x", Allow},
		{"p/sub", allow("sub/**"), "x", Allow},
		{"p/sub", allow("src/**"), "src/x", Ask},
		{".", allow("src/**"), "src/x", Ask},
		{"p/out", allow("out/**"), "x", Ask},
		{"p/out", allow("elsewhere/**"), "x", Ask},
		{"p", allow(dir + "/p/src/**"), "src/x", Allow},
	} {
		p := Policy{Root: filepath.Join(dir, "p"), Workspace: filepath.Join(dir, tt.workspace), Rules: []Rule{tt.rule}}
		v := p.Decide(t.Context(), pathTool("write_file", registry.CategoryWrite, tt.path), registry.Call{})
		if v.Decision != tt.want {
			t.Errorf("%s of %q for %q in %s: %v, want %v", tt.rule.Decision, tt.rule.Path, tt.path, tt.workspace, v.Decision, tt.want)
		}
		if tt.want == Deny {
			if v := p.Decide(t.Context(), pathTool("grep", registry.CategoryRead, "y"), registry.Call{}); v.Decision != Deny && !v.Hides(tt.path) {
				t.Errorf("%q is shown in %s, although %q is denied", tt.path, tt.workspace, tt.rule.Path)
			}
		}
	}
	// A project root that is reached by a link is no other workspace.
	p := Policy{Root: filepath.Join(dir, "alias"), Workspace: filepath.Join(dir, "alias"), Rules: []Rule{allow("src/**")}}
	if v := p.Decide(t.Context(), pathTool("write_file", registry.CategoryWrite, "src/x"), registry.Call{}); v.Decision != Allow {
		t.Errorf("by a link: %v", v.Decision)
	}
	p.Workspace = filepath.Join(dir, "p")
	if v := p.Decide(t.Context(), pathTool("write_file", registry.CategoryWrite, filepath.Join(dir, "alias/src/x")), registry.Call{}); v.Decision != Allow {
		t.Errorf("a path by a link: %v", v.Decision)
	}
}

// The name of a workspace is never treated as a glob.
func TestWorkspaceIsNotAGlob(t *testing.T) {
	for _, workspace := range []string{"/w/{a,b}", "/w/[x]", "/w/a*", "/w/{a", `/w/a\b`} {
		for _, tt := range []struct {
			rule Rule
			path string
			want Decision
		}{
			{Rule{Path: "secrets/**", Decision: Deny}, "secrets/key", Deny},
			{Rule{Path: "secrets/**", Decision: Deny}, "docs/a.md", Ask},
			{Rule{Path: "docs/**", Decision: Allow}, "docs/a.md", Allow},
			{Rule{Path: "docs/**", Decision: Allow}, "/w/a/docs/a.md", Ask},
		} {
			p := Policy{Workspace: workspace, Rules: []Rule{tt.rule}}
			if v := p.Decide(t.Context(), pathTool("write_file", registry.CategoryWrite, tt.path), registry.Call{}); v.Decision != tt.want {
				t.Errorf("%s in %s, rule %+v: %v (%s)", tt.path, workspace, tt.rule, v.Decision, v.Reason)
			}
		}
	}
}
