package cli

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/registry"
)

// Override is the JSON form of an override in the settings and the tool it changed.
type Override struct {
	Origin   string               `json:"origin"` // file:line
	Entry    json.RawMessage      `json:"entry"`  // as in the settings, with secrets masked
	Upstream *registry.Definition `json:"upstream"`
	// Shape is the tool with the override; absent if the document already has it.
	Shape *registry.Definition `json:"shape,omitempty"`
}

// NewOverride returns the override of a tool, nil if it has none.
func NewOverride(t *registry.Tool) *Override {
	if t.Reshaped == nil {
		return nil
	}
	return &Override{Origin: t.Reshaped.Origin, Entry: t.Reshaped.Shown, Upstream: t.Upstream().AsSent()}
}
