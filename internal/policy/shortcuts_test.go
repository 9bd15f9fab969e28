package policy

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// pieces are combined to random globs and paths.
var pieces = []string{"a", "b", "A", "ab", "src", "/", "/", "/", "//", "*", "**", "/**", "**/", "?", ".", "..", "../", "./", "{", "}", ",", "{a,b}", "{a/,**}", "{b,{a,src}}",
	"[", "]", "[ab]", "[!a]", "[a-b]", "[}]", `\`, `\*`, `\{`, "é", "É", "e\u0301", "ß", "ﬁ", "fi", "／", "＊", "K", "k", "ſ", "s", "İ", "\xff", "\x00", ":", "w", "[x]", " "}

// assemble joins pieces.
func assemble(choice []byte) string {
	var out strings.Builder
	for _, c := range choice {
		out.WriteString(pieces[int(c)%len(pieces)])
	}
	return out.String()
}

// matchWithoutLiterals is a straightforward version of pathMatch, for comparison.
func matchWithoutLiterals(workspace string, r *Rule, p pathname) bool {
	glob := absolutePath(QuoteGlob(workspace), r.Path)
	if r.isNarrow() {
		ok, err := doublestar.Match(glob, p.absolute)
		return ok && err == nil && p.certain
	}
	for _, glob := range []string{strings.ToLower(glob), text.Folded(glob)} {
		for _, name := range []string{strings.ToLower(p.absolute), text.Folded(p.absolute)} {
			ok, err := doublestar.Match(glob, name)
			below, _ := doublestar.Match(strings.TrimSuffix(glob, "/")+"/**", name)
			if ok || below || err != nil {
				return true
			}
		}
	}
	return false
}

// sameMatches checks that matching with shortcuts has the same result as matching
// without them.
func sameMatches(t *testing.T, glob, name string) {
	t.Helper()
	for _, workspace := range []string{"/w", "/", "/a/[x]{b}/K"} {
		f := &facts{policy: &Policy{Workspace: workspace}}
		p := f.where().name(name)
		for _, decision := range []Decision{Allow, Deny} {
			r := Rule{Path: glob, Decision: decision}
			want := matchWithoutLiterals(workspace, &r, p)
			if got := f.where().match(&r, p); got != want {
				t.Errorf("%s of %q for %q in %s: %t before Compile, want %t", decision, glob, name, workspace, got, want)
			}
			if err := r.Compile(); err == nil && f.where().match(&r, p) != want {
				t.Errorf("%s of %q for %q in %s: %t with %q, want %t", decision, glob, name, workspace, !want, r.literals, want)
			}
		}
	}
}

func TestShortCuts(t *testing.T) {
	for _, tt := range [][2]string{
		{"secrets/**", "secrets"}, {"secrets/", "SECRETS/key"}, {"src/{a,**}", "src"}, {"a{/**,b}", "a"}, {"../a", "/a"}, {"./src", "src/x"}, {"src//a", "src/a"},
		{"a/../b", "b/c"}, {"[a", "x"}, {"{a", "x"}, {"**/.env", ".ENV/x"}, {"KEY", "KEY"}, {"/w/**", "."}, {".", "a"}, {"*", "."}, {"**", "."}, {`a\*b`, "a*b"}, {"{[}],b}", "b"},
		{"\ufffd/**", "\xff/a"}, {"**/\ufffd", "\xff"}, {`\ab*`, "abc"}, {"A*", "a"}, {"Z*", "z"}, {"AZ", "az"},
	} {
		sameMatches(t, tt[0], tt[1])
	}
	random := rand.New(rand.NewPCG(1, 2))
	choose := func() string {
		choice := make([]byte, random.IntN(7))
		for i := range choice {
			choice[i] = byte(random.IntN(256))
		}
		return assemble(choice)
	}
	for range 20_000 {
		glob := choose()
		name := choose()
		if random.IntN(2) == 0 { // near the glob, so that many match
			name = strings.NewReplacer("**", "a/b", "*", "ab", "?", "s", "{a,b}", "b", "[ab]", "a").Replace(glob)
		}
		sameMatches(t, glob, name)
	}
}

// FuzzShortCuts is TestShortCuts with fuzzed globs and paths.
func FuzzShortCuts(f *testing.F) {
	f.Add([]byte{4, 5, 9}, []byte{4, 5, 0})
	f.Fuzz(func(t *testing.T, glob, name []byte) {
		for _, pair := range [][2]string{
			{assemble(glob[:min(len(glob), 12)]), assemble(name[:min(len(name), 12)])},
			{string(glob[:min(len(glob), 40)]), string(name[:min(len(name), 40)])},
		} {
			// No setting and no name has a NUL, which text.MatchName uses for slashes.
			if !strings.ContainsRune(pair[0]+pair[1], 0) {
				sameMatches(t, pair[0], pair[1])
			}
		}
	})
}

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
		for _, when := range []string{"before Compile", "compiled"} {
			v := p.Decide(t.Context(), pathTool("write_file", registry.CategoryWrite, tt.path), registry.Call{})
			if v.Decision != tt.want {
				t.Errorf("%s of %q for %q in %s, %s: %v, want %v", tt.rule.Decision, tt.rule.Path, tt.path, tt.workspace, when, v.Decision, tt.want)
			}
			if err := p.Rules[0].Compile(); err != nil {
				t.Fatal(err)
			}
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
