package registry

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Part is one aspect of a tool that its fingerprint covers.
type Part struct {
	Name  string `json:"name"` // source, name, description, inputSchema, outputSchema, annotations, behind
	Value string `json:"value"`
}

// Parts returns what the fingerprint covers, in a fixed order: the definition
// and, as "behind", the command or server that provides it. Values are
// canonical JSON or text without secrets.
func (t *Tool) Parts() []Part {
	return []Part{
		{"source", t.Source},
		{"name", t.OriginalName()},
		{"description", t.Description},
		{"inputSchema", jsonx.Canonical(t.InputSchema)},
		{"outputSchema", jsonx.Canonical(t.OutputSchema)},
		{"annotations", jsonx.Canonical(t.Annotations)},
		{"behind", jsonx.Canonical(t.Identity)},
	}
}

// Fingerprint returns the hash, in hex, of everything about a tool to which an
// approval or a lock is tied (spec section 8.5). It depends neither on the name
// under which the tool is registered nor on key order.
func (t *Tool) Fingerprint() string {
	h := sha256.New()
	for _, p := range t.Parts() {
		h.Write([]byte(p.Name + "\x00" + p.Value + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// OriginalName returns the name as the source gave it; for an MCP tool, the
// server's name for it.
func (d *Definition) OriginalName() string {
	if d.IsMCP() {
		return d.ServerTool
	}
	return d.Name
}
