package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/registry"
)

// A rule that allows by annotations needs what the server itself sent. A rule that
// denies takes an absent annotation as MCP does.
func TestRuleMatchesAnnotations(t *testing.T) {
	allowed := map[string]bool{"readOnlyHint": true}
	for _, tt := range []struct {
		name, sent  string
		annotations map[string]bool
		decision    Decision
		want        Decision
	}{
		{"stated", `{"readOnlyHint":true}`, allowed, Allow, Allow},
		{"stated otherwise", `{"readOnlyHint":false}`, allowed, Allow, Ask},
		{"absent", ``, allowed, Allow, Ask},
		{"no boolean", `{"readOnlyHint":"true"}`, allowed, Allow, Ask},
		{"other case", `{"readonlyhint":true}`, allowed, Allow, Ask},
		{"one of two", `{"readOnlyHint":true}`, map[string]bool{"readOnlyHint": true, "openWorldHint": false}, Allow, Ask},
		{"both", `{"readOnlyHint":true,"openWorldHint":false}`, map[string]bool{"readOnlyHint": true, "openWorldHint": false}, Allow, Allow},
		{"not destructive by default", ``, map[string]bool{"destructiveHint": false}, Allow, Ask},
		{"destructive by default", ``, map[string]bool{"destructiveHint": true}, Deny, Deny},
		{"destructive where it is no boolean", `{"destructiveHint":0}`, map[string]bool{"destructiveHint": true}, Deny, Deny},
		{"not destructive, since it reads", `{"readOnlyHint":true}`, map[string]bool{"destructiveHint": true}, Deny, Ask},
		{"stated not to be destructive", `{"destructiveHint":false}`, map[string]bool{"destructiveHint": true}, Deny, Ask},
		{"not known to read", ``, map[string]bool{"readOnlyHint": false}, Deny, Deny},
		{"read", `{"readOnlyHint":true}`, map[string]bool{"readOnlyHint": false}, Deny, Ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tool := mcpTool("bank", "balance", "balance")
			tool.Annotations = json.RawMessage(tt.sent)
			r := Rule{Server: "bank", Annotations: tt.annotations, Decision: tt.decision}
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			p := Policy{Rules: []Rule{r}}
			if v := p.Decide(t.Context(), tool, registry.Call{}); v.Decision != tt.want {
				t.Errorf("got %v (%s), want %v", v.Decision, v.Reason, tt.want)
			}
		})
	}
	p := Policy{Rules: []Rule{{Annotations: map[string]bool{"destructiveHint": true}, Decision: Deny}}}
	if v := p.Decide(t.Context(), &registry.Tool{Definition: registry.Definition{Name: "t", Source: registry.SourceCommand}}, registry.Call{}); v.Decision == Deny {
		t.Error("MCP's default counts for a tool that is not of a server")
	}
}

func TestRuleWithAnnotationsIsChecked(t *testing.T) {
	readOnly := map[string]bool{"readOnlyHint": true}
	for _, tt := range []struct {
		rule Rule
		want string // in the error; "" for none
	}{
		{Rule{Annotations: readOnly, Decision: Deny}, ""},
		{Rule{Server: "bank", Annotations: readOnly, Decision: Allow}, ""},
		{Rule{Annotations: readOnly, Decision: Allow}, "must name one server"},
		{Rule{Annotations: readOnly, Decision: Sandbox}, "must name one server"},
		{Rule{Server: "*", Annotations: readOnly, Decision: Allow}, "must name one server"},
		{Rule{Server: "bank", Annotations: map[string]bool{"readOnly": true}, Decision: Deny}, `unknown annotation "readOnly"`},
		{Rule{Server: "bank", Annotations: map[string]bool{}, Decision: Deny}, "annotations is empty"},
	} {
		err := tt.rule.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: the error is %v, want one with %q", tt.rule, err, tt.want)
		}
	}
}
