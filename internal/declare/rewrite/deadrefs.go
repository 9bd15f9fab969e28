package rewrite

import (
	"bytes"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// DropDeadRefs removes references without a target in the schema, because APIs
// resolve them and refuse the whole request if they cannot. The resulting
// schema accepts more; calls are still checked against the original. source is
// the text from which root was parsed.
func DropDeadRefs(root *jsonx.Value, source []byte) (changes []string) {
	if !bytes.Contains(source, []byte(`$ref"`)) {
		return nil // most schemas need no walk
	}
	d := deadRefs{refs: schema.NewRefs(root)}
	d.drop(root)
	if d.found {
		return []string{"dangling references dropped"}
	}
	return nil
}

type deadRefs struct {
	refs    *schema.Refs
	anchors map[string]bool // nil until needed
	found   bool
}

func (d *deadRefs) drop(n *jsonx.Value) {
	if ref := n.Get("$ref"); ref != nil && (!ref.Is(jsonx.String) || !d.leads(n, ref.Text())) {
		n.Remove("$ref")
		d.found = true
	}
	for sub := range schema.Within(n) {
		d.drop(sub)
	}
}

func (d *deadRefs) leads(n *jsonx.Value, ref string) bool {
	if _, err := d.refs.Resolve(n); err == nil {
		return true
	}
	name, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return false
	}
	if d.anchors == nil {
		d.anchors = map[string]bool{}
		d.collect(d.refs.Root())
	}
	return d.anchors[name]
}

// collect finds the names that schemas define for themselves, in any draft.
func (d *deadRefs) collect(n *jsonx.Value) {
	for _, keyword := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		if name := n.Get(keyword).Text(); name != "" {
			d.anchors[strings.TrimPrefix(name, "#")] = true
		}
	}
	for sub := range schema.Within(n) {
		d.collect(sub)
	}
}
