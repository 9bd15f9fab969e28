package registry

import "context"

// Source provides tools. Discover must return soon after ctx is done. It is called
// at most once, except that [Loader.Renew] calls it again. If only some tools
// cannot be used, they are reported as diagnostics. An error means that the whole
// source failed; the tools are then ignored. Discover may be called from any
// goroutine.
//
// A source that has processes or connections also implements io.Closer. The caller
// of the Loader closes it with [Loader.Close], even if Discover failed.
type Source interface {
	// Name is the value of Definition.Source for its tools: "builtin",
	// "plugin:ID", "command", "composite", "mcp:SERVER".
	Name() string
	Discover(context.Context) ([]Tool, []Diagnostic, error)
}

// Severity is the severity of a diagnostic.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Diagnostic is a problem that did not stop the run.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`             // stable snake_case word
	Source   string   `json:"source,omitempty"` // source that it is about
	Tool     string   `json:"tool,omitempty"`   // tool that it is about
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"` // what to do
}
