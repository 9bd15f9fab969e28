package cli

import (
	"encoding/json"
	"strings"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/registry"
)

// Override is the JSON of what an override in the settings changed in a tool.
type Override struct {
	Origin   string               `json:"origin"` // file:line
	Entry    json.RawMessage      `json:"entry"`  // as in the settings, with secrets masked
	Upstream *registry.Definition `json:"upstream"`
	// Shape is the tool with the override; nil if the document has it anyway.
	Shape *registry.Definition `json:"shape,omitempty"`
}

// NewOverride returns the override of a tool, nil if it has none.
func NewOverride(t *registry.Tool) *Override {
	if t.Reshaped == nil {
		return nil
	}
	return &Override{Origin: t.Reshaped.Origin, Entry: t.Reshaped.Shown, Upstream: t.Upstream()}
}

// Signature formats a tool as its name with its params; "?" marks optional
// params.
func Signature(d *registry.Definition) string {
	var params []string
	for _, p := range args.Describe(d) {
		switch {
		case strings.ContainsRune(p.Name, '.'): // inside another param
		case p.Required:
			params = append(params, p.Name)
		default:
			params = append(params, p.Name+"?")
		}
	}
	return d.Name + "(" + strings.Join(params, ", ") + ")"
}
