package table

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the documentation anew")

func TestTableIsWhole(t *testing.T) {
	seen, variables := map[string]bool{}, map[string]string{}
	x := NewIndex()
	rows := x.Rows
	for i := range rows {
		s := &rows[i]
		for _, name := range []string{s.Name, s.Twin} {
			if name != "" && seen[name] {
				t.Errorf("%s stands twice in the table", name)
			}
			seen[name] = true
		}
		if s.Doc == "" && !s.Foreign {
			t.Errorf("%s has no documentation", s.Name)
		}
		if v := s.Variable(); v != "" {
			if variables[v] != "" {
				t.Errorf("%s belongs to %s and %s", v, variables[v], s.Name)
			}
			variables[v] = s.Name
		}
	}
	for flag, key := range map[string]string{"TOOLREG_TOOL": "", "TOOLREG_PROJECT_ROOT": "", "TOOLREG_ROOT": "", "TOOLREG_APPROVAL_MODE": "approvalMode"} {
		if variables[flag] != key {
			t.Errorf("%s is the variable of %q, want %q", flag, variables[flag], key)
		}
	}
	for group := range x.groups {
		if s := x.Row(group); s != nil && !s.Foreign {
			t.Errorf("%s is a setting and a group", s.Name)
		}
	}
}

// TestDocumentationHoldsTheTable compares docs/settings.md, which ends with the
// table; -update rewrites it.
func TestDocumentationHoldsTheTable(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "settings.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	prose, _, found := strings.Cut(string(text), "| key | also |")
	if !found {
		t.Fatalf("%s has no table", path)
	}
	want := prose + referenceTable()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./internal/settings/table -update (-want +got):\n%s", path, diff)
	}
}
