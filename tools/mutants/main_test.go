package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The name of a change does not depend on its line number, and changes on the same line or
// on equal lines have different names.
func TestNamesDoNotDependOnLineNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.go")
	const code = "func f(a, b bool) bool {\n\tif a && b && a {\n\t\treturn true\n\t}\n\treturn a && b\n}\n\nvar x = 1 << 2\n"
	want := []string{
		"a.go f INVERT_LOGICAL if a && b && a {", "a.go f INVERT_LOGICAL if a && b && a { (2)",
		"a.go f INVERT_LOGICAL return a && b", "a.go - INVERT_BITWISE var x = 1 << 2",
	}
	for above, text := range map[int]string{0: "package a; ", 2: "package a\n\n"} {
		if err := os.WriteFile(path, []byte(text+code), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := nameAll(path, []mutant{
			{"INVERT_BITWISE", "LIVED", above + 8, 11}, {"INVERT_LOGICAL", "LIVED", above + 2, 12},
			{"INVERT_LOGICAL", "LIVED", above + 5, 11}, {"INVERT_LOGICAL", "LIVED", above + 2, 7},
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d lines further down (-want +got):\n%s", above, diff)
		}
	}
}

func TestReadListRequiresReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mutants.txt")
	for text, ok := range map[string]bool{"": true, "a\nb\n\twhy\nc\n\twhy too\n": true, "a\n\twhy\nb\n": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if may, err := readList(path); (err == nil) != ok || ok && text != "" && len(may) != 3 {
			t.Errorf("%q: %v, %v", text, may, err)
		}
	}
	if may, err := readList(path + ".none"); err != nil || len(may) > 0 {
		t.Errorf("no file: %v, %v", may, err)
	}
}
