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

// New returns the findings that are not known. A finding is known if another with the
// same tool, code, place and message covers its formats, whatever its severity.
func New(found, known []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool {
		return slices.ContainsFunc(known, func(k Finding) bool {
			return k.Tool == f.Tool && k.Code == f.Code && k.Pointer == f.Pointer && k.Message == f.Message && covers(k.Formats, f.Formats)
		})
	})
}

// covers reports whether a list of formats, in which none means all, has the others.
func covers(formats, others []string) bool {
	return len(formats) == 0 || len(others) > 0 && !slices.ContainsFunc(others, func(o string) bool { return !slices.Contains(formats, o) })
}

// listNames returns a list of names as text. It has only the first ten if there are many.
func listNames(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
