package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin"
)

// generatorOfTests reads the source once for all tests.
var generatorOfTests = sync.OnceValues(func() (*generator, error) { return newGenerator(filepath.Join("..", "..")) })

func newTestGenerator(t *testing.T) *generator {
	t.Helper()
	g, err := generatorOfTests()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The generated parts of all pages are what would be generated now.
func TestDocsAreCurrent(t *testing.T) {
	g := newTestGenerator(t)
	blocks := map[string]bool{}
	err := eachPage(filepath.Join("..", ".."), func(path, text string) error {
		for _, m := range blockComment.FindAllStringSubmatch(text, -1) {
			blocks[m[1]] = true
		}
		current, err := g.regenerate(text)
		if diff := cmp.Diff(current, text); diff != "" {
			t.Errorf("%s is not current, run make docs (-want +got):\n%s", path, diff)
		}
		if strings.Contains(text, undocumented) {
			t.Errorf("%s: write what the code means instead of %s", path, undocumented)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for _, name := range builtin.Names() {
		wanted = append(wanted, "tool "+name)
	}
	for _, shape := range g.shapes() {
		wanted = append(wanted, "json "+shape)
	}
	for _, want := range wanted {
		if what, ok := strings.CutPrefix(want, "json diagnostic "); ok { // pages have the table of the fields alone
			want = "json " + what
		}
		if !blocks[want] {
			t.Errorf("no page has <!-- generated: %s -->", want)
		}
	}
}

// Generated parts are replaced, and unknown generators are errors.
func TestRegenerate(t *testing.T) {
	g := newTestGenerator(t)
	page := "# A\n\n<!-- generated: json audit.Caller -->\n| old |\n<!-- end -->\n\nText.\n"
	got, err := g.regenerate(page)
	if err != nil {
		t.Fatal(err)
	}
	want := "# A\n\n<!-- generated: json audit.Caller -->\n" + shapeHead +
		"| `name` | string? | name of its token, \"stdio\" or \"local\"; absent for a host |\n" +
		"| `client` | string? | name that it reports |\n" +
		"| `version` | string? | version that it reports |\n" +
		"| `groups` | list of strings? | groups that its token names |\n" +
		"| `profile` | string? | its profile of serve |\n<!-- end -->\n\nText.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, wrong := range []string{"json audit.Nothing", "tool nothing", "nothing"} {
		if _, err := g.regenerate("<!-- generated: " + wrong + " -->\n<!-- end -->"); err == nil {
			t.Errorf("%s is generated", wrong)
		}
	}
}

// A code keeps its meaning, a new code is marked as undocumented, and a code that no
// longer exists is removed.
func TestCodeTable(t *testing.T) {
	got := codeTable([]string{"a", "new"}, "| code | meaning |\n|---|---|\n| `a` | An *a*. |\n| `gone` | Gone. |\n")
	if want := "| code | meaning |\n|---|---|\n| `a` | An *a*. |\n| `new` | (undocumented) |\n"; got != want {
		t.Errorf("%q", got)
	}
}

// Codes are found in literals, through functions that get them as arguments, and
// as constants.
func TestDiagnosticCodes(t *testing.T) {
	codes := newTestGenerator(t).diagnosticCodes()
	for _, want := range []string{"approval_not_saved", "tool_nameless", "project_untrusted", "audit_not_written", "listing_cut"} {
		if !slices.Contains(codes, want) {
			t.Errorf("%s was not found", want)
		}
	}
}

func TestPresetsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "choosing.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, preset := range builtin.Presets() {
		if !strings.Contains(string(text), "| `"+preset+"` |") {
			t.Errorf("docs/choosing.md does not mention the preset %s", preset)
		}
	}
}
