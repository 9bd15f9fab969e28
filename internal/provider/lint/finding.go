package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// Finding is a finding of lint. Severity is error for what a provider would
// refuse, warning for what it would ignore or what had to be changed, and info
// for advice.
type Finding struct {
	Severity registry.Severity `json:"severity"`
	Code     string            `json:"code"`
	Formats  []string          `json:"formats,omitempty"` // none: it applies to every format
	Tool     string            `json:"tool,omitempty"`    // "": it applies to all tools together
	Pointer  string            `json:"pointer,omitempty"` // into the declared schema
	Message  string            `json:"message"`
	Hint     string            `json:"hint,omitempty"`
}

// few lists names, only the first ten if there are many.
func few(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
