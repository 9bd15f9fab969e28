package policy

import (
	"testing"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
)

// A file that a trusted API's operation sends is decided on as a call of read_file, too.
func TestSentFilesAreRead(t *testing.T) {
	secret, err := jq.Compile(`.file_path == "secret.txt"`)
	if err != nil {
		t.Fatal(err)
	}
	canonical := func(name string) string { return map[string]string{"ReadFile": "read_file"}[name] }
	for name, tt := range map[string]struct {
		rules []Rule
		paths []string
		mode  Mode
		want  Decision
	}{
		"no rule":                 {paths: []string{"secret.txt"}, want: Allow},
		"denied":                  {rules: []Rule{{Tool: "read_file", Path: "secret*", Decision: Deny}}, paths: []string{"a", "secret.txt"}, want: Deny},
		"by an alias":             {rules: []Rule{{Tool: "ReadFile", Path: "secret*", Decision: Deny}}, paths: []string{"secret.txt"}, want: Deny},
		"by category":             {rules: []Rule{{Category: "read", Path: "secret*", Decision: Deny}}, paths: []string{"secret.txt"}, want: Deny},
		"by an expression":        {rules: []Rule{{Tool: "read_file", When: secret, Decision: Deny}}, paths: []string{"secret.txt"}, want: Deny},
		"by exclusion":            {rules: []Rule{{Tool: "read_file", Decision: Deny}}, paths: []string{"a"}, want: Deny},
		"asked":                   {rules: []Rule{{Tool: "read_file", Path: "secret*", Decision: Ask}}, paths: []string{"secret.txt", "a"}, want: Ask},
		"asked, then denied":      {rules: []Rule{{Tool: "read_file", Path: "secret*", Decision: Ask}, {Category: "read", Path: "b", Decision: Deny}}, paths: []string{"secret.txt", "b"}, want: Deny},
		"denied, then asked":      {rules: []Rule{{Tool: "read_file", Path: "secret*", Decision: Ask}, {Category: "read", Path: "b", Decision: Deny}}, paths: []string{"b", "secret.txt"}, want: Deny},
		"denied, then allowed":    {rules: []Rule{{Tool: "read_file", Path: "b", Decision: Deny}}, paths: []string{"b", "a"}, want: Deny},
		"asked in yolo mode":      {rules: []Rule{{Tool: "read_file", Path: "secret*", Decision: Ask}}, paths: []string{"secret.txt"}, mode: ModeYolo, want: Allow},
		"another file":            {rules: []Rule{{Tool: "read_file", Path: "secret*", Decision: Deny}}, paths: []string{"a"}, want: Allow},
		"no file":                 {rules: []Rule{{Tool: "read_file", Decision: Deny}}, want: Allow},
		"the API is denied":       {rules: []Rule{{Tool: "read_file", Decision: Ask}, {Server: "pets", Decision: Deny}}, paths: []string{"a"}, want: Deny},
		"reading loosens nothing": {rules: []Rule{{Tool: "read_file", Decision: Allow}, {Server: "pets", Decision: Ask}}, paths: []string{"a"}, want: Ask},
	} {
		p := Policy{Rules: tt.rules, Mode: tt.mode, Canonical: canonical, Approvals: &Approvals{Dir: stateDir(t)}}
		tool := &registry.Tool{Trusted: true, Definition: registry.Definition{Name: "upload", Source: "openapi:pets", Server: "pets", Category: registry.CategoryNetwork}}
		tool.Subject = func(registry.Call) (registry.Subject, error) { return registry.Subject{Paths: tt.paths}, nil }
		v := p.Decide(t.Context(), tool, registry.Call{Tool: "upload"})
		if v.Decision != tt.want {
			t.Errorf("%s: %s, want %s", name, v.Decision, tt.want)
		}
		if v.Rule != nil && v.Rule.Tool == "read_file" && len(v.Scopes) > 0 {
			t.Errorf("%s: an answer can be remembered although the rule would ask again", name)
		}
	}
}
