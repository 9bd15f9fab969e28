package policy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// pieces are combined to random globs and paths.
var pieces = []string{"a", "b", "A", "ab", "src", "/", "/", "/", "//", "*", "**", "/**", "**/", "?", ".", "..", "../", "./", "{", "}", ",", "{a,b}", "{a/,**}", "{b,{a,src}}",
	"[", "]", "[ab]", "[!a]", "[a-b]", "[}]", `\`, `\*`, `\{`, "é", "É", "K", "k", "ſ", "s", "İ", "\xff", "\x00", ":", "w", "[x]", " "}

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
	glob, name := absolutePath(quoteGlob(workspace), r.Path), p.absolute
	if !r.isNarrow() {
		glob, name = strings.ToLower(glob), p.lower
	} else if !p.certain {
		return false
	}
	ok, err := doublestar.Match(glob, name)
	if err != nil {
		return !r.isNarrow()
	}
	if !ok && !r.isNarrow() {
		ok, _ = doublestar.Match(strings.TrimSuffix(glob, "/")+"/**", name)
	}
	return ok
}

// sameMatches checks that matching with shortcuts has the same result as matching
// without them.
func sameMatches(t *testing.T, glob, name string) {
	t.Helper()
	for _, workspace := range []string{"/w", "/", "/a/[x]{b}/K"} {
		d := &decision{policy: &Policy{Workspace: workspace}}
		p := d.pathname(name)
		for _, decision := range []Decision{Allow, Deny} {
			r := Rule{Path: glob, Decision: decision}
			want := matchWithoutLiterals(workspace, &r, p)
			if got := d.pathMatch(&r, p); got != want {
				t.Errorf("%s of %q for %q in %s: %t before Compile, want %t", decision, glob, name, workspace, got, want)
			}
			if err := r.Compile(); err == nil && d.pathMatch(&r, p) != want {
				t.Errorf("%s of %q for %q in %s: %t with %q, want %t", decision, glob, name, workspace, !want, r.literals, want)
			}
		}
	}
	want := name != "" && text.MatchName(strings.ToLower(glob), strings.ToLower(name))
	if got := foldMatch(glob, name); got != want {
		t.Errorf("foldMatch(%q, %q) = %t", glob, name, got)
	}
}

func TestShortCuts(t *testing.T) {
	for _, tt := range [][2]string{
		{"secrets/**", "secrets"}, {"secrets/", "SECRETS/key"}, {"src/{a,**}", "src"}, {"a{/**,b}", "a"}, {"../a", "/a"}, {"./src", "src/x"}, {"src//a", "src/a"},
		{"a/../b", "b/c"}, {"[a", "x"}, {"{a", "x"}, {"**/.env", ".ENV/x"}, {"KEY", "KEY"}, {"/w/**", "."}, {".", "a"}, {"*", "."}, {"**", "."}, {`a\*b`, "a*b"}, {"{[}],b}", "b"},
		{"\ufffd/**", "\xff/a"}, {"**/\ufffd", "\xff"}, {"A*", "a"}, {"Z*", "z"}, {"AZ", "az"},
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
