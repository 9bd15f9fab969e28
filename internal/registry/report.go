package registry

import "time"

// State is the state of a source, as discover shows it.
type State string

// The states of a source.
const (
	StateOK      State = "ok"
	StateFailed  State = "failed"
	StateSkipped State = "skipped"
)

// SourceReport describes the outcome of one source.
type SourceReport struct {
	Name     string
	State    State
	Tools    int // tools found, before filters and conflicts
	Duration time.Duration
	Err      error // why it failed
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

// Warning returns a diagnostic of severity warning. source and hint may be empty.
func Warning(code, source, message, hint string) Diagnostic {
	return Diagnostic{Severity: SeverityWarning, Code: code, Source: source, Message: message, Hint: hint}
}

// Hidden is a tool that a setting excludes from the registry, or that is
// quarantined.
type Hidden struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source"`
	Reason  string `json:"reason"`            // why it is not registered
	Setting string `json:"setting,omitempty"` // origin of the setting that hides it: file:line, a flag or "default"
	Now     string `json:"-"`                 // the new name, if Name is the one that an override replaced
	Err     error  `json:"-"`                 // why the tool is quarantined, or the failure of its server
	Kept    bool   `json:"-"`                 // the name is kept for the server of Source
}
