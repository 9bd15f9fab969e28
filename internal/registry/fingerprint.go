package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Part is one aspect of a tool that its fingerprint covers.
type Part struct {
	Name  string `json:"name"` // source, name, description, inputSchema, outputSchema, annotations, behind, title, icons, execution, _meta, override
	Value string `json:"value"`
}

// Parts returns the parts that the fingerprint covers, in a fixed order: the
// definition as the source sent it, the command or server that provides it
// ("behind") and its override. Values are canonical JSON or text without secrets; title,
// icons, execution and _meta are there if the server sent them.
func (t *Tool) Parts() []Part {
	var out []Part
	for _, p := range t.aspects() {
		out = append(out, Part{p.name, string(p.appendTo(nil))})
	}
	return out
}

// aspect is a [Part] before its JSON is in canonical form.
type aspect struct {
	name, text string
	json       json.RawMessage // the value if text is empty
}

func (p *aspect) appendTo(b []byte) []byte {
	return jsonx.AppendCanonical(append(b, p.text...), p.json)
}

func (t *Tool) aspects() []aspect {
	d := t.Upstream().AsSent()
	out := []aspect{
		{name: "source", text: d.Source},
		{name: "name", text: d.OriginalName()},
		{name: "description", text: d.Description},
		{name: "inputSchema", json: d.InputSchema},
		{name: "outputSchema", json: d.OutputSchema},
		{name: "annotations", json: d.Annotations},
		{name: "behind", json: t.Identity},
	}
	for _, p := range []aspect{{name: "title", text: d.MCP.Title}, {name: "icons", json: d.MCP.Icons}, {name: "execution", json: d.MCP.Execution}, {name: "_meta", json: d.MCP.Meta}} {
		if p.text != "" || len(p.json) > 0 { // few tools have these
			out = append(out, p)
		}
	}
	if t.Reshaped != nil {
		out = append(out, aspect{name: PartOverride, json: t.Reshaped.Shown})
	}
	return out
}

// PartOverride is the name of the part with a tool's override.
const PartOverride = "override"

// Fingerprint returns a hash, in hex, of everything about a tool to which approvals
// and the lock file are tied. It depends neither on the name under which the tool
// is registered nor on key order.
func (t *Tool) Fingerprint() string {
	h := sha256.New()
	d := t.Upstream().AsSent()
	b := make([]byte, 0, 512+max(len(d.Description), len(d.InputSchema), len(d.OutputSchema))) // seldom grows
	for _, p := range t.aspects() {
		b = append(append(b[:0], p.name...), 0)
		b = append(p.appendTo(b), 0)
		h.Write(b)
	}
	if t.Reshaped != nil { // with the secrets that are masked in its part
		h.Write([]byte(jsonx.Canonical(t.Reshaped.Override)))
	}
	return hex.EncodeToString(h.Sum(nil))
}
