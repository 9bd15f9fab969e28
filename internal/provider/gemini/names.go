package gemini

import (
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
)

// OddNames returns the names of properties, at any depth, that the documentation of
// Vertex AI does not allow. Allowed are at most 64 letters, digits and underscores,
// beginning with a letter or an underscore.
func OddNames(root *jsonx.Value) []string {
	var odd []string
	var look func(n *jsonx.Value)
	look = func(n *jsonx.Value) {
		if properties := n.Get("properties"); properties != nil {
			for _, m := range properties.Members {
				if !isPlain(m.Name) && !slices.Contains(odd, m.Name) {
					odd = append(odd, m.Name)
				}
			}
		}
		for sub := range schema.Within(n) {
			look(sub)
		}
	}
	look(root)
	return odd
}

func isPlain(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}
