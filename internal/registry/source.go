package registry

import "context"

// Source gives tools. Discover must return soon after ctx is done. It is called
// at most once, but again by [Loader.Renew], which wants what the source has
// now. What could not be used of a working source is a diagnostic; the error
// means that the source as a whole failed, and then the tools count no more.
// Discover may be called from its own goroutine.
//
// A source that holds processes or connections also implements io.Closer;
// whoever loads the registry closes it, after a failed Discover too.
type Source interface {
	// Name is the value of Definition.Source for its tools: "builtin",
	// "plugin:ID", "command", "composite", "mcp:SERVER".
	Name() string
	Discover(context.Context) ([]Tool, []Diagnostic, error)
}

// Severity grades a diagnostic.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Diagnostic tells of something that did not stop the run (spec section 3,
// shape D). Code is a stable snake_case word.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	Source   string   `json:"source,omitempty"`
	Tool     string   `json:"tool,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}
