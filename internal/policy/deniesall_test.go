package policy

import (
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestDeniesAll(t *testing.T) {
	write := &registry.Tool{Definition: registry.Definition{Name: "write_file", Source: registry.SourceBuiltin, Category: registry.CategoryWrite}}
	read := &registry.Tool{Definition: registry.Definition{Name: "read_file", Source: registry.SourceBuiltin, Category: registry.CategoryRead}}
	for name, tt := range map[string]struct {
		policy Policy
		tool   *registry.Tool
		want   bool
	}{
		"nothing said":                    {Policy{}, write, false},
		"plan mode, a tool that writes":   {Policy{Mode: ModePlan}, write, true},
		"plan mode, a tool that reads":    {Policy{Mode: ModePlan}, read, false},
		"plan mode, though a rule allows": {Policy{Mode: ModePlan, Rules: []Rule{{Tool: "write_file", Decision: Allow}}}, write, true},
		"a rule on the tool":              {Policy{Rules: []Rule{{Tool: "write_*", Decision: Deny}}}, write, true},
		"also in yolo mode":               {Policy{Mode: ModeYolo, Rules: []Rule{{Tool: "write_file", Decision: Deny}}}, write, true},
		"a rule on another tool":          {Policy{Rules: []Rule{{Tool: "edit", Decision: Deny}}}, write, false},
		"another tool, then this one":     {Policy{Rules: []Rule{{Tool: "edit", Decision: Deny}, {Tool: "write_file", Decision: Deny}}}, write, true},
		"a rule on some paths":            {Policy{Rules: []Rule{{Tool: "write_file", Path: "x/**", Decision: Deny}}}, write, false},
		"all but some paths":              {Policy{Rules: []Rule{{Tool: "write_file", Path: "x/**", Decision: Allow}, {Tool: "write_file", Decision: Deny}}}, write, false},
		"some paths, then all":            {Policy{Rules: []Rule{{Tool: "write_file", Path: "x/**", Decision: Deny}, {Tool: "write_file", Decision: Deny}}}, write, true},
		"allowed before it is denied":     {Policy{Rules: []Rule{{Tool: "write_file", Decision: Allow}, {Tool: "write_file", Decision: Deny}}}, write, false},
		"a rule on some clients":          {Policy{Rules: []Rule{{Tool: "write_file", Client: "ci", Decision: Deny}}}, write, false},
		"all but some clients":            {Policy{Rules: []Rule{{Tool: "write_file", Client: "ci", Decision: Allow}, {Tool: "write_file", Decision: Deny}}}, write, false},
		"some clients, then all":          {Policy{Rules: []Rule{{Client: "ci", Decision: Deny}, {Tool: "write_file", Decision: Deny}}}, write, true},
		"denied unless a condition asks":  {Policy{Rules: []Rule{{Tool: "write_file", When: when(t, ".a"), Decision: Ask}, {Tool: "write_file", Decision: Deny}}}, write, false},
		"a default":                       {Policy{Defaults: map[registry.Category]Rule{registry.CategoryWrite: {Decision: Deny}}}, write, true},
		"a default of another category":   {Policy{Defaults: map[registry.Category]Rule{registry.CategoryNetwork: {Decision: Deny}}}, write, false},
	} {
		if v, got := tt.policy.DeniesAll(t.Context(), tt.tool); got != tt.want {
			t.Errorf("%s: %t, want %t (%+v)", name, got, tt.want, v)
		}
	}
}
