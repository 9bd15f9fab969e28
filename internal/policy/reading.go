package policy

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/registry"
)

// reading returns the strictest verdict on reading the files that a call of a tool of
// another source sends: a rule that keeps the model from a file holds whatever tool
// reads it. It allows if the call reads none.
func (d *decision) reading() Verdict {
	strictest := Verdict{Decision: Allow}
	if d.tool.Source == registry.SourceBuiltin {
		return strictest
	}
	for _, p := range d.subject.Paths {
		params, err := json.Marshal(map[string]string{"file_path": p})
		if err != nil {
			return Verdict{Decision: Deny, Origin: originDefault, Reason: err.Error()}
		}
		read := decision{ctx: d.ctx, policy: d.policy, call: registry.Call{Params: params}, subject: registry.Subject{Paths: []string{p}},
			tool: &registry.Tool{Definition: registry.Definition{Name: "read_file", Source: registry.SourceBuiltin, Category: registry.CategoryRead}}}
		if v := read.plain(); v.Decision == Deny || v.Decision == Ask && strictest.Decision == Allow {
			strictest = v
		}
	}
	return strictest
}
