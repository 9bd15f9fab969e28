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

// Parts returns what the fingerprint covers, in a fixed order: the definition,
// and as "behind" the command or server that stands behind it. Values are
// canonical JSON or text; they hold no secrets.
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

// Fingerprint returns the hash, in hex, of everything about a tool that an
// approval or a lock is tied to (spec section 8.5). It does not depend on the
// name under which the tool is registered, nor on key order.
func (t *Tool) Fingerprint() string {
	h := sha256.New()
	for _, p := range t.Parts() {
		h.Write([]byte(p.Name + "\x00" + p.Value + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// OriginalName returns the name as the source gave it: of an MCP tool that of
// its server.
func (d *Definition) OriginalName() string {
	if d.IsMCP() {
		return d.ServerTool
	}
	return d.Name
}
