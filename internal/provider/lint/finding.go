package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Finding is a finding of [Lint]. Severity is error if a provider would reject the
// declaration, warning if a part would be ignored or had to be changed, and info
// for advice.
type Finding struct {
	Severity registry.Severity `json:"severity"`
	Code     string            `json:"code"`
	Formats  []string          `json:"formats,omitempty"` // if empty, the finding applies to every format
	Tool     string            `json:"tool,omitempty"`    // if empty, the finding applies to all tools together
	Pointer  string            `json:"pointer,omitempty"` // into the declared schema
	Message  string            `json:"message"`
	Hint     string            `json:"hint,omitempty"`
}

// listNames returns a list of names as text. It has only the first ten if there are many.
func listNames(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
