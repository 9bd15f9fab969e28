package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Fingerprint returns a hash, in hex, of everything about a tool that approvals and the lock file
// depend on. It does not depend on the tool's registered name or on key order.
func (t *Tool) Fingerprint() string { return new(Fingerprinter).Of(t) }

// Fingerprinter computes the fingerprints of many tools with one buffer. The zero value is ready to
// use.
type Fingerprinter struct {
	canonizer jsonx.Canonizer
	buffer    []byte
}

// Of returns the [Tool.Fingerprint] of a tool.
func (f *Fingerprinter) Of(t *Tool) string {
	h := sha256.New()
	for _, p := range t.aspects() {
		f.buffer = append(append(f.buffer[:0], p.name...), 0)
		f.buffer = append(f.canonizer.Append(append(f.buffer, p.text...), p.json), 0)
		h.Write(f.buffer)
	}
	if t.Reshaped != nil { // with the secrets that are masked in its part
		h.Write([]byte(jsonx.Canonical(t.Reshaped.Override)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Part is one aspect of a tool that its fingerprint covers.
type Part struct {
	// Name is source, name, description, inputSchema, outputSchema, annotations, behind, title,
	// icons, execution, _meta or override.
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Parts returns the parts that the fingerprint covers, in a fixed order: the
// definition as the source sent it, the command or server that provides it
// ("behind") and its override. Values are canonical JSON or text without secrets; title,
// icons, execution and _meta are there if the server sent them.
func (t *Tool) Parts() []Part {
	var out []Part
	for _, p := range t.aspects() {
		out = append(out, Part{p.name, p.text + jsonx.Canonical(p.json)})
	}
	return out
}

// aspect is a [Part] before its JSON is in canonical form.
type aspect struct {
	name, text string
	json       json.RawMessage // the value if text is empty
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
	for _, p := range []aspect{
		{name: "title", text: d.MCP.Title}, {name: "icons", json: d.MCP.Icons},
		{name: "execution", json: d.MCP.Execution}, {name: "_meta", json: d.MCP.Meta},
	} {
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
