package registry

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// readVectors reads recorded cases of the Gemini CLI registry.
func readVectors[T any](t *testing.T, file string) []T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Count int `json:"count"`
		Cases []T `json:"cases"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Cases) != doc.Count || doc.Count == 0 {
		t.Fatalf("%s: %d cases, want %d", file, len(doc.Cases), doc.Count)
	}
	return doc.Cases
}

func TestValidNameMatchesRecordedCases(t *testing.T) {
	type vector struct{ Name, Input, Output string }
	for _, v := range readVectors[vector](t, "valid_names.json") {
		if got := ValidName(v.Input); got != v.Output {
			t.Errorf("%s: ValidName(%q) = %q, want %q", v.Name, v.Input, got, v.Output)
		}
	}
}

func TestNear(t *testing.T) {
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"raed_file", []string{"read_file"}},
		{"READ_FILE", []string{"read_file"}},
		{"grpe", []string{"grep"}},
		{"file", []string{"read_file", "write_file"}}, // part of the name
		{"edits", []string{"edit"}},
		{"list", nil}, // two letters off "edit"
		{"zzzzzzzzzz", nil},
		{"z", nil},
	} {
		if diff := gocmp.Diff(tt.want, Near(tt.name, []string{"read_file", "grep", "edit", "write_file", "x"}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	sorted := []string{"", "latest", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "v1.2", "1.10.0", "2", "10000000000000000000000.0.0"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := CompareVersions(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("%q against %q: %d, want %d", a, b, got, want)
			}
		}
	}
	if CompareVersions("1.0.0+a", "v1.0.0+b") != 0 {
		t.Error("build metadata affects the order of versions")
	}
}

func FuzzValidName(f *testing.F) {
	for _, s := range []string{"", "a", "日本語", "😀", strings.Repeat("x", 64), "a b\x00c\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := ValidName(s)
		if !isValidName(got) {
			t.Errorf("ValidName(%q) = %q is not valid", s, got)
		}
		if ValidName(got) != got {
			t.Errorf("ValidName(%q) changes its own result", s)
		}
	})
}
