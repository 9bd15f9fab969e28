package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// absentHint returns the value that MCP (revision 2025-11-25) gives to a tool without
// a boolean annotation, and whether there is an annotation of this name.
func absentHint(name string) (value, ok bool) {
	switch name {
	case "readOnlyHint", "idempotentHint":
		return false, true
	case "destructiveHint", "openWorldHint":
		return true, true
	}
	return false, false
}

// validateAnnotations returns an error if the condition has an unknown name, or if a
// rule that loosens does not name one server: annotations are what a server says of
// itself, so they allow nothing unless a person trusts this server.
func (r *Rule) validateAnnotations() error {
	if r.Annotations != nil && len(r.Annotations) == 0 {
		return errors.New("annotations is empty; give it a value or remove it")
	}
	for name := range r.Annotations {
		if _, ok := absentHint(name); !ok {
			return fmt.Errorf("unknown annotation %q; use readOnlyHint, destructiveHint, idempotentHint or openWorldHint", name)
		}
	}
	if len(r.Annotations) > 0 && r.isNarrow() && (r.Server == "" || strings.ContainsAny(r.Server, `*?[{\`)) {
		return errors.New("a rule that allows by annotations must name one server with the key server, because every server can claim any annotation")
	}
	return nil
}

// ruleAnnotations reports whether the tool has the annotations of the rule. For a
// rule that loosens, the server must have sent each of them. For other rules, an
// annotation that is absent or has no boolean value matches by MCP's default, and a
// tool that is not of a server must have it.
func (f *facts) ruleAnnotations(r *Rule) bool {
	if len(r.Annotations) == 0 {
		return true
	}
	var sent map[string]any
	_ = json.Unmarshal(f.tool.Annotations, &sent) // a definition whose annotations are no object has none
	for name, want := range r.Annotations {
		got, ok := sent[name].(bool)
		if !ok && (r.isNarrow() || !f.tool.OfServer()) {
			return false
		}
		if !ok {
			got, _ = absentHint(name)
			if readOnly, _ := sent["readOnlyHint"].(bool); readOnly && name == "destructiveHint" {
				got = false // only tools that change something have it
			}
		}
		if got != want {
			return false
		}
	}
	return true
}
