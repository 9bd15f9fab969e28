package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// A tool has changed if approvals cover it, but none of them as it is now.
func TestChangedSinceApproval(t *testing.T) {
	described := func(server, description string) *registry.Tool {
		tool := mcpTool(server, "t", "t")
		tool.Description = description
		return tool
	}
	for name, tt := range map[string]struct {
		approved []*registry.Tool
		want     []string
	}{
		"none":                   {nil, nil},
		"as it is":               {[]*registry.Tool{described("s", "now")}, nil},
		"another":                {[]*registry.Tool{described("s", "before")}, []string{"description"}},
		"of another server":      {[]*registry.Tool{described("r", "before")}, nil},
		"another and as it is":   {[]*registry.Tool{described("s", "before"), described("s", "now")}, nil},
		"another tool after it":  {[]*registry.Tool{described("s", "before"), mcpTool("s", "u", "u")}, []string{"description"}},
		"another tool before it": {[]*registry.Tool{mcpTool("s", "u", "u"), described("s", "before")}, []string{"description"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Approvals{Dir: stateDir(t), Project: t.TempDir(), Now: clock()}
			for _, tool := range tt.approved {
				if err := a.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, a.Changed(t.Context(), described("s", "now"))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
