package registry

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
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
