package gemini

import (
	"slices"

	"github.com/toolreg/toolreg/internal/declare/tree"
)

// OddNames returns the names of properties, at any depth, that the
// documentation of Vertex AI does not allow: a letter or an underscore, then
// letters, digits and underscores, 64 in all.
func OddNames(schema *tree.Node) []string {
	var odd []string
	var look func(n *tree.Node)
	look = func(n *tree.Node) {
		if properties := n.Get("properties"); properties != nil {
			for _, m := range properties.Members {
				if !isPlain(m.Name) && !slices.Contains(odd, m.Name) {
					odd = append(odd, m.Name)
				}
			}
		}
		tree.EachSchema(n, look)
	}
	look(schema)
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
