package glob

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPattern(t *testing.T) {
	tests := []struct {
		pattern  string
		yes, not []string
	}{
		{"*.go", []string{"a.go", "x/y/a.go", ".go", "A.GO"}, []string{"a.goo", "go"}},
		{"./*.go", []string{"a.go"}, []string{"x/a.go"}},
		{"/*.go", []string{"a.go"}, []string{"x/a.go"}},
		{"**/*.go", []string{"a.go", "x/a.go", "x/y/z.go"}, []string{"a.go/x"}},
		{"src/**", []string{"src/a", "src/a/b"}, []string{"src", "xsrc/a"}},
		{"src/**/t/*.c", []string{"src/t/a.c", "src/x/y/t/a.c", "src/t/t/t/b.c"}, []string{"src/a.c", "t/a.c", "src/t/x/a.c"}},
		{"*.{ts,tsx}", []string{"a.ts", "b/c.tsx"}, []string{"a.t", "a.tsxx"}},
		{"{a,b/{c,d}}/x", []string{"a/x", "b/c/x", "b/d/x"}, []string{"b/x", "c/x"}},
		{"[a-c]?.[!x]", []string{"bz.y", "x/a1.z"}, []string{"dz.y", "bz.x", "b.y"}},
		{"[b-a]x", []string{"bx"}, []string{"ax", "-x"}},
		{`a\*b`, []string{"a*b"}, []string{"axb"}},
		{`\[x\]`, []string{"[x]"}, []string{"x"}},
		{`{x}`, []string{"{x}"}, []string{"x"}},
		{`a{,b}c`, []string{"ac", "abc"}, []string{"abbc"}},
		{`{a`, []string{"{a"}, []string{"a"}},
		{"a**b", []string{"ab", "axxb"}, []string{"a/b"}},
		{"**", []string{"a", "a/b/c"}, nil},
		{"x//y", []string{"x/y"}, nil},
		{"app/[id]/p.tsx", []string{"app/[id]/p.tsx", "app/i/p.tsx"}, []string{"app/id/p.tsx"}},
		{"**/[...slug]/page.[jt]s", []string{"a/[...slug]/page.ts", "[...slug]/page.[jt]s"}, []string{"a/slug/page.ts"}},
		{"[[...all]]/*", []string{"[[...all]]/x"}, []string{"all/x"}},
		{"f[1].{a,b}", []string{"f[1].a", "f1.b"}, []string{"f[1].c"}},
		{"[!x],y[a,b]", []string{"[!x],y[a,b]", "z,y,"}, []string{"x,ya"}},
		{`\[id\]/a`, []string{"[id]/a"}, []string{"i/a"}},
		{"cafe\u0301*", []string{"caf\u00e9.md", "cafe\u0301.md"}, []string{"cafe.md"}},
		{"é*", []string{"Éa", "éclair"}, []string{"e"}},
	}
	for _, tt := range tests {
		p, err := CompilePattern(tt.pattern, true)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		for _, path := range tt.yes {
			if !p.Match(path) {
				t.Errorf("%q does not match %q", tt.pattern, path)
			}
		}
		for _, path := range tt.not {
			if p.Match(path) {
				t.Errorf("%q matches %q", tt.pattern, path)
			}
		}
	}
	if p, _ := CompilePattern("*.go", false); p.Match("A.GO") {
		t.Error("case was ignored")
	}
}

func TestQuote(t *testing.T) {
	for _, name := range []string{"[id]", "{a,b}", "*", "a?b", `a\b`, "[...x]é"} {
		p, err := CompilePattern(Quote(name), false)
		if err != nil || !p.Match(name) || p.Match("i") || p.Match("a") || p.Match("axb") {
			t.Errorf("%q is quoted %q (%v)", name, Quote(name), err)
		}
	}
}

func TestPatternErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		"[a": "close the bracket", `a\`: "close the bracket", "../x": `".."`, "a/../b": `".."`,
		strings.Repeat("{a,b}", 30): "1024", "{a,[}": "close the bracket",
	} {
		if _, err := CompilePattern(pattern, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
}

func TestMayContain(t *testing.T) {
	p, err := CompilePattern("{src/*/test,docs/**}/x.md", true)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{
		"src": true, "src/a": true, "src/a/test": true, "src/a/test/deep": false, "src/a/b": false, "docs": true, "docs/a/b/c": true, "lib": false,
	} {
		if got := p.MayContain(dir); got != want {
			t.Errorf("mayContain(%q) = %v", dir, got)
		}
	}
}

// TestHostilePatterns would take forever if a pattern could make matching
// exponential.
func TestHostilePatterns(t *testing.T) {
	long := strings.Repeat("a", 250)
	deep := strings.Repeat("a/", 500) + "a"
	for pattern, path := range map[string]string{
		strings.Repeat("*a", 60) + "b":    long,
		strings.Repeat("**/", 200) + "b":  deep,
		strings.Repeat("**/a/", 80) + "b": deep,
		strings.Repeat("?*", 100) + "b":   long,
	} {
		w, ok := Compile(pattern)
		if !ok || w.Match(path) {
			t.Errorf("%.20q matches", pattern)
		}
	}
}

// naive matches by trying everything, which is slow but obviously correct.
func naive(parts []string, path []string) bool {
	if len(parts) == 0 {
		return len(path) == 0
	}
	if strings.Trim(parts[0], "*") == "" && len(parts[0]) > 1 {
		if len(parts) == 1 {
			return len(path) > 0
		}
		for i := range len(path) + 1 {
			if naive(parts[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	return len(path) > 0 && naivePart(parts[0], path[0]) && naive(parts[1:], path[1:])
}

func naivePart(part, name string) bool {
	switch {
	case part == "":
		return name == ""
	case part[0] == '*':
		return naivePart(part[1:], name) || name != "" && naivePart(part, name[1:])
	case name == "":
		return false
	}
	return (part[0] == '?' || part[0] == name[0]) && naivePart(part[1:], name[1:])
}

func FuzzWildcard(f *testing.F) {
	f.Add("**/a*b/?c", "x/y/aab/zc")
	f.Add("a/**/**/b", "a/b/a/b")
	f.Add("[!a-z]\\", "Q")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		parts, names := strings.Split(pattern, "/"), strings.Split(path, "/")
		if len(pattern) > 24 || len(path) > 24 || strings.Count(pattern, "*") > 8 || slices.Contains(parts, "") || slices.Contains(names, "") {
			return
		}
		w, ok := Compile(pattern)
		plain := !strings.ContainsAny(pattern, `[\`)
		if plain && !ok {
			t.Fatalf("%q was rejected", pattern)
		}
		got := ok && w.Match(path)
		if want := naive(parts, names); plain && got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, path, got, want)
		}
		dir, _, found := strings.Cut(path, "/")
		if got && found && !w.mayContain(dir) {
			t.Errorf("%q matches %q but not below %q", pattern, path, dir)
		}
		if _, err := expandBraces(pattern); err != nil && !strings.Contains(pattern, "{") {
			t.Error(err)
		}
	})
}

func TestExpandBraces(t *testing.T) {
	got, err := expandBraces("a{b,c{d,e}}f{,g}")
	if diff := cmp.Diff([]string{"abf", "abfg", "acdf", "acdfg", "acef", "acefg"}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
