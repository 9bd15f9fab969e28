package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func named(names ...string) []registry.Definition {
	defs := make([]registry.Definition, len(names))
	for i, n := range names {
		defs[i] = registry.Definition{Name: n, Source: "builtin"}
	}
	return defs
}

// Tools have the same declared names whether all or only some of the registry are
// declared.
func TestNamesDoNotDependOnSelection(t *testing.T) {
	registered := []string{"a.b", "a_b", "c.d", "plain"}
	for _, f := range Formats() {
		whole, _ := f.Encode(named(registered...), Options{})
		for i, name := range registered {
			part, _ := f.Encode(named(name), Options{Registered: registered})
			if got, want := part.Declarations[0].Name, whole.Declarations[i].Name; got != want {
				t.Errorf("%s: %s alone is declared as %q, among all as %q", f.Name, name, got, want)
			}
			if whole.Declarations[i].Name != name && f.Keeps(name) {
				t.Errorf("%s: keeps %q, and declares it as %q", f.Name, name, whole.Declarations[i].Name)
			}
		}
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct {
		format string
		names  []string
		want   map[string]string
	}{
		{"openai", []string{"read_file", "a-b", "C9"}, map[string]string{"read_file": "read_file", "a-b": "a-b", "C9": "C9"}},
		{"openai", []string{"a.b"}, map[string]string{"a_b": "a.b"}},
		{"openai", []string{"a.b", "a_b"}, map[string]string{"a_b": "a_b", "a_b_2e7336": "a.b"}},
		{"anthropic", []string{"a.b_c", "a_b.c"}, nil},
		{"gemini", []string{"9.9", "-x", ".x", "_x", "ok.y"}, map[string]string{"_9.9": "9.9", "_-x": "-x", "_.x": ".x", "_x": "_x", "ok.y": "ok.y"}},
		{"gemini", []string{strings.Repeat("9", 63)}, map[string]string{"_" + strings.Repeat("9", 63): strings.Repeat("9", 63)}},
		{"typescript", []string{"delete", "delete_", "a.b", "9x", "ok"}, nil},
		{"openai", []string{long, long + "y"}, nil},
		{"openai", []string{"tool_search"}, map[string]string{"tool_search": "tool_search"}},
		{"openai-responses", []string{"tool_search", "x"}, map[string]string{"tool_search_": "tool_search", "x": "x"}},
		{"mcp", []string{"a.b-c_D", "é"}, map[string]string{"a.b-c_D": "a.b-c_D", "_": "é"}},
	} {
		got, err := Names(c.format, c.names)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(c.names) {
			t.Errorf("%s %v: %v", c.format, c.names, got)
		}
		if c.want == nil {
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.format, c.names, diff)
		}
	}
	if _, err := Names("none", nil); err == nil {
		t.Error("an unknown format has names")
	}
}

// TestLongNames checks names that are too long, and one that becomes too long when
// a hash is added.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	got, err := Names("openai", []string{long + "-yy", long + ".", long + "_"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		strings.Repeat("x", 57) + "_" + hashed(long+"-yy"): long + "-yy",
		strings.Repeat("x", 57) + "_" + hashed(long+"."):   long + ".",
		long + "_": long + "_",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// hashed returns the suffix of a changed name.
func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:3])
}

// TestNameProperties checks for many random sets of names that declared names match
// the provider's rule, are unique, can be mapped back, and do not depend on the
// order.
func TestNameProperties(t *testing.T) {
	rules := map[string]*regexp.Regexp{
		"gemini":           regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`),
		"openai":           regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		"openai-responses": regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		"anthropic":        regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		"bedrock":          regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		"mistral":          regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`),
		"mcp":              regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`),
		"json-schema":      regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
		"prompt":           regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`),
		"typescript":       regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`),
	}
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "_", ".", "-", "9", "é", "delete", ":", "a_b", strings.Repeat("x", 30), "\n", "\xff"}
	for range 300 {
		set := map[string]bool{}
		for range 12 {
			var b strings.Builder
			for range 1 + random.IntN(4) {
				b.WriteString(pieces[random.IntN(len(pieces))])
			}
			set[b.String()] = true
		}
		var names []string
		for n := range set {
			names = append(names, n)
		}
		for format, rule := range rules {
			got, err := Names(format, names)
			if err != nil || len(got) != len(names) {
				t.Fatalf("%s: %d of %q, %v", format, len(got), names, err)
			}
			for declared, original := range got {
				if !rule.MatchString(declared) {
					t.Errorf("%s declares %q as %q", format, original, declared)
				}
				if back := OriginalNames(format, names)[declared]; back != original {
					t.Errorf("%s: %q leads to %q, not %q", format, declared, back, original)
				}
			}
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			again, err := Names(format, names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("%s: names depend on the order:\n%s", format, diff)
			}
		}
	}
}

func TestOriginalNames(t *testing.T) {
	names := []string{"a.b", "plain", "9x", "delete", "twice", "twice", ""}
	for _, c := range []struct {
		format, name, want string
	}{
		{"openai", "a_b", "a.b"}, {"openai", "plain", "plain"}, {"openai", "a.b", ""}, {"gemini", "_9x", "9x"},
		{"", "a_b", "a.b"}, {"", "_9x", "9x"}, {"", "delete_", "delete"}, {"", "a.b", "a.b"}, {"", "twice", "twice"},
		{"", "nothing", ""}, {"", "", ""}, {"openai", "", ""}, {"no-format", "plain", ""},
	} {
		if got := OriginalNames(c.format, names)[c.name]; got != c.want {
			t.Errorf("in %q %q means %q, want %q", c.format, c.name, got, c.want)
		}
	}
}

// TestOriginalNamesAcrossFormats checks the names of every format without giving
// the format: each is mapped to the name in that format, or to "".
func TestOriginalNamesAcrossFormats(t *testing.T) {
	for _, registered := range [][]string{
		{"a.b", "a-b"}, {".x", "-x"}, {"if", "if."}, {"x.y", "x_-y", "-"}, {"1.a", "_1.a", "1-a"},
	} {
		for _, f := range Formats() {
			names, err := Names(f.Name, registered)
			if err != nil {
				t.Fatal(err)
			}
			for declared, original := range names {
				if got := OriginalNames("", registered)[declared]; got != "" && got != original {
					t.Errorf("%s: %q means %q there, but %q was found", f.Name, declared, original, got)
				}
			}
		}
	}
}

func TestManyCollisions(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, strings.NewReplacer("0", ".", "1", "_").Replace(fmt.Sprintf("%011b", i)))
	}
	got, err := Names("openai", names)
	if err != nil || len(got) != len(names) {
		t.Errorf("%d distinct names of %d, %v", len(got), len(names), err)
	}
}
