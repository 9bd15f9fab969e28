package settings

import (
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// Registry is one entry of registries. Its strings are unexpanded.
type Registry struct {
	URL     string `setting:"url"`
	Headers []Pair `setting:"headers"`
	Origin  Origin
}

// officialRegistry is used if no other one is set.
const officialRegistry = "https://registry.modelcontextprotocol.io"

// addresses checks a list of addresses, or of objects with one.
func (r *reader) addresses(row *table.Row, key string, n *jsonx.Value) {
	if !r.want(n, key, jsonx.Array, "a list of addresses") {
		return
	}
	for i, item := range n.Items {
		at, address := fmt.Sprintf("%s[%d]", key, i), item
		if item.Is(jsonx.Object) {
			r.object(row, at, item)
			at, address = at+".url", item.Get("url")
		}
		switch {
		case address == nil: // it is reported as missing
		case address.Kind != jsonx.String:
			r.wrongType(address, at, "an address, or an object with url and headers")
		default:
			r.report(address, at, CheckRegistry(address.Text()))
		}
	}
}

// CheckRegistry rejects an address that a registry cannot have, because commands that a
// registry names are run: it must be encrypted, or on this machine. It accepts any address
// that contains variables.
func CheckRegistry(address string) error {
	if strings.Contains(address, "$") {
		return nil
	}
	if strings.ContainsAny(address, "?#") {
		return fmt.Errorf("its address has a query or a fragment")
	}
	return webaddr.Check(address)
}
