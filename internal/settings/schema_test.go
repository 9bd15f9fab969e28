package settings

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

var update = flag.Bool("update", false, "write the documentation anew")

func TestTableIsWhole(t *testing.T) {
	seen, variables := map[string]bool{}, map[string]string{}
	rows := table()
	for i := range rows {
		s := &rows[i]
		for _, name := range []string{s.name, s.twin} {
			if name != "" && seen[name] {
				t.Errorf("%s stands twice in the table", name)
			}
			seen[name] = true
		}
		if s.doc == "" && !s.foreign {
			t.Errorf("%s has no documentation", s.name)
		}
		if v := s.variable(); v != "" {
			if variables[v] != "" {
				t.Errorf("%s belongs to %s and %s", v, variables[v], s.name)
			}
			variables[v] = s.name
		}
		checkDefault(t, s)
	}
	for flag, key := range map[string]string{"TOOLREG_TOOL": "", "TOOLREG_PROJECT_ROOT": "", "TOOLREG_ROOT": "", "TOOLREG_APPROVAL_MODE": "approvalMode"} {
		if variables[flag] != key {
			t.Errorf("%s is the variable of %q, want %q", flag, variables[flag], key)
		}
	}
	x := newIndex(rows)
	for group := range x.groups {
		if s := x.byName[group]; s != nil {
			t.Errorf("%s is a setting and a group", s.name)
		}
	}
}

// checkDefault makes sure that a default would be accepted from a file.
func checkDefault(t *testing.T, s *setting) {
	t.Helper()
	if s.def == "" {
		return
	}
	r := reader{index: newIndex(nil), layer: &layer{}}
	r.check(s, s.name, defaultNode(s))
	for _, p := range r.layer.problems {
		t.Errorf("default of %s: %s", s.name, p.Message)
	}
}

func TestSchemaAgreesWithTheReader(t *testing.T) {
	v := registry.NewValidator(Schema())
	if _, err := v.Compile(t.Context()); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text string
		valid      bool
	}{
		{"both generations, flat", stripComments(flat), true},
		{"both generations, nested", nested, true},
		{"a list too few", `{"coreTools": "x"}`, false},
		{"an unknown value", `{"approvalMode": "x"}`, false},
		{"a rule without decision", `{"policy": {"rules": [{"tool": "x"}]}}`, false},
		{"a wrong type in a server", `{"mcpServers": {"a": {"command": "x", "args": [1]}}}`, false},
		{"durations", `{"toolDiscoveryTimeout": 5, "shell": {"timeout": "1m"}}`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			violations, err := v.Validate(t.Context(), json.RawMessage(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(violations) == 0; got != test.valid {
				t.Errorf("the schema says %v: %v", got, violations)
			}
			if got := problemsOf("s.json", test.text); (len(got) == 0) != test.valid {
				t.Errorf("the reader says %q", got)
			}
		})
	}
}

// stripComments makes plain JSON of a text whose comments end its lines.
func stripComments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			out.WriteString(line)
		}
	}
	return strings.NewReplacer("},\n}", "}\n}", "[]},\n\t},", "[]}\n\t}").Replace(out.String())
}

// TestDocumentationHoldsTheTable compares docs/settings.md, which ends in the
// table; -update writes it anew.
func TestDocumentationHoldsTheTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "settings.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	prose, _, found := strings.Cut(string(text), "| key | also |")
	if !found {
		t.Fatalf("%s holds no table", path)
	}
	want := prose + referenceTable()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not up to date, run go test ./internal/settings -update (-want +got):\n%s", path, diff)
	}
}

func TestExamplesOfTheDocumentationAreFine(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(string(text), "\n```")[1:] {
		kind, example, _ := strings.Cut(block, "\n")
		if kind == "" || kind == "sh" { // the end of a block, or commands
			continue
		}
		found++
		l := read(newIndex(table()), ScopeUser, "docs."+kind, []byte(example))
		for _, p := range l.problems {
			t.Errorf("%s", p)
		}
		for _, d := range l.unknown {
			t.Errorf("%s", d.Message)
		}
	}
	if found != 2 {
		t.Errorf("%d examples, want 2", found)
	}
}
