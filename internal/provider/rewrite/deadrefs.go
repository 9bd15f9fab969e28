package rewrite

import (
	"bytes"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// DropDeadRefs removes references without a target in the schema, because an API
// that cannot resolve a reference rejects the whole request. The result accepts
// more values; calls are still checked against the original. source is the text
// from which root was parsed.
func DropDeadRefs(root *jsonx.Value, source []byte) (changes []string) {
	if !bytes.Contains(source, []byte(`$ref"`)) {
		return nil // most schemas have no references
	}
	d := deadRefs{refs: schema.NewRefs(root)}
	d.drop(root)
	if d.found {
		return []string{"dangling references dropped"}
	}
	return nil
}

type deadRefs struct {
	refs  *schema.Refs
	found bool
}

func (d *deadRefs) drop(n *jsonx.Value) {
	if ref := n.Get("$ref"); ref != nil && !d.leads(n, ref) {
		n.Remove("$ref")
		d.found = true
	}
	for sub := range schema.Within(n) {
		d.drop(sub)
	}
}

// leads reports whether APIs can resolve a reference. They do not resolve URLs, not
// even that of the schema itself.
func (d *deadRefs) leads(n, ref *jsonx.Value) bool {
	if !strings.HasPrefix(ref.Text(), "#") {
		return false
	}
	_, err := d.refs.Resolve(n)
	return err == nil
}
