package registry

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Part is one aspect of a tool that its fingerprint covers.
type Part struct {
	Name  string `json:"name"` // source, name, description, inputSchema, outputSchema, annotations, behind, override
	Value string `json:"value"`
}

// Parts returns what the fingerprint covers, in a fixed order: the definition
// as the source sent it, the command or server that provides it ("behind") and
// the override of the settings. Values are canonical JSON or text without secrets.
func (t *Tool) Parts() []Part {
	d := t.Upstream()
	parts := []Part{
		{"source", d.Source},
		{"name", d.OriginalName()},
		{"description", d.Description},
		{"inputSchema", jsonx.Canonical(d.InputSchema)},
		{"outputSchema", jsonx.Canonical(d.OutputSchema)},
		{"annotations", jsonx.Canonical(d.Annotations)},
		{"behind", jsonx.Canonical(t.Identity)},
	}
	if t.Reshaped != nil {
		parts = append(parts, Part{PartOverride, jsonx.Canonical(t.Reshaped.Shown)})
	}
	return parts
}

// PartOverride is the name of the part with a tool's override.
const PartOverride = "override"

// Fingerprint returns the hash, in hex, of everything about a tool to which an
// approval or a lock is tied (spec section 8.5). It depends neither on the name
// under which the tool is registered nor on key order.
func (t *Tool) Fingerprint() string {
	h := sha256.New()
	var b []byte
	for _, p := range t.Parts() {
		b = append(append(b[:0], p.Name...), 0)
		b = append(append(b, p.Value...), 0)
		h.Write(b)
	}
	if t.Reshaped != nil { // with the secrets that its part masks
		h.Write([]byte(jsonx.Canonical(t.Reshaped.Override)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// OriginalName returns the name as the source gave it; for an MCP tool, the
// server's name for it.
func (d *Definition) OriginalName() string {
	if d.IsMCP() {
		return d.ServerTool
	}
	return d.Upstream().Name
}
