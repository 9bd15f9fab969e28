package engine

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// maxChanges is how many changed tools are named.
const maxChanges = 5

// changesOf names the tools that differ, such as "echo (description)" or "new:
// x".
func changesOf(before, now []registry.Tool) []string {
	old := make(map[string]*registry.Tool, len(before))
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	var out []string
	for i := range now {
		t := &now[i]
		was := old[t.Name]
		delete(old, t.Name)
		switch {
		case was == nil:
			out = append(out, "new: "+t.Name)
		case was.Fingerprint() != t.Fingerprint():
			out = append(out, fmt.Sprintf("%s (%s)", t.Name, strings.Join(changedParts(was, t), ", ")))
		}
	}
	for i := range before {
		if old[before[i].Name] != nil {
			out = append(out, "removed: "+before[i].Name)
		}
	}
	if more := len(out) - maxChanges; more > 0 {
		out = append(out[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	return out
}

func changedParts(before, now *registry.Tool) []string {
	var out []string
	old := before.Parts()
	for i, p := range now.Parts() {
		if p.Value != old[i].Value {
			out = append(out, p.Name)
		}
	}
	return out
}
