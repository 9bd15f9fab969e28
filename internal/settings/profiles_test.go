package settings_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolreg/toolreg/internal/settings"
)

// The rules of profiles stand before all others, in their order.
func TestRulesOfProfiles(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, text := range map[string]string{ // the last file is tried first
		"1.yaml": "serve: {profiles: {p: {rules: [{tool: first-allow, decision: allow}, {tool: first-deny, decision: deny}]}}}\npolicy: {rules: [{tool: first, decision: allow}]}",
		"2.yaml": "serve: {profiles: {q: {rules: [{tool: second-ask, decision: ask}]}}}",
		"3.yaml": "policy: {rules: [{tool: third, decision: deny}]}",
	} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(files)
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: files, NoUser: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range set.Rules {
		got = append(got, r.Profile+" "+r.Tool)
	}
	want := []string{"p first-allow", "p first-deny", "q second-ask", " third", " first"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
