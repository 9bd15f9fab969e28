package settings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// TestDefaultsWouldBeAccepted checks the defaults of the table as if they stood
// in a file.
func TestDefaultsWouldBeAccepted(t *testing.T) {
	x := table.NewIndex()
	for i := range x.Rows {
		row := &x.Rows[i]
		if row.Default == "" {
			continue
		}
		r := reader{index: x, layer: &layer{}}
		r.check(row, row.Name, row.DefaultValue())
		for _, p := range r.layer.problems {
			t.Errorf("default of %s: %s", row.Name, p.Message)
		}
	}
}

func TestSchemaAgreesWithTheReader(t *testing.T) {
	v := registry.NewValidator(table.Schema())
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
		{"a sandbox of the Gemini CLI", `{"sandbox": true, "tools": {"sandbox": "docker"}}`, true},
		{"a sandbox that is a list", `{"sandbox": ["docker"]}`, false},
		{"hooks", `{"hooks": {"beforeCall": [{"command": "x", "tools": ["a"], "timeout": 5}]}}`, true},
		{"a hook without a command", `{"hooks": {"beforeCall": [{"tools": ["a"]}]}}`, false},
		{"a hook that is no list", `{"hooks": {"beforeCall": {"command": "x"}}}`, false},
		{"a sandbox", `{"sandbox": {"mode": "auto", "shell": {"network": ["a.example:80"]}, "servers": {"a": {"network": "all"}}}}`, true},
		{"an unknown kind of programs", `{"sandbox": {"shel": {"mode": "auto"}}}`, false},
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
		l := read(table.NewIndex(), ScopeUser, "docs."+kind, []byte(example))
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
