package registry

import (
	"context"
	"sync"
	"time"
)

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

// Filter decides whether a tool is registered. It returns nil to register it. It
// may leave Name, Version and Source of Hidden empty; they are filled in.
type Filter func(*Tool) *Hidden

// Conflict rules for discovered tools (setting conflicts.discovered).
const (
	ConflictOverwrite = "overwrite"
	ConflictReject    = "reject"
	ConflictQualify   = "qualify"
)

// Options are the options of a [Loader]. The zero value registers everything.
type Options struct {
	// Filters run in order on each tool before it takes a name. The first that
	// hides the tool is reported.
	Filters []Filter
	// Overrides change tools that no filter hides. Changed tools pass through the
	// filters again. May be nil.
	Overrides Overrides
	// Last runs after Filters. LastShaped runs after the overrides have been applied,
	// and also receives the name that the source gave the tool. Both may be nil.
	Last       Filter
	LastShaped func(t *Tool, name string) *Hidden
	// Conflicts is the rule for discovered tools whose name is taken; "" means
	// overwrite.
	Conflicts string
	// Names decides which server a plain name belongs to. If it is nil, the name belongs to
	// the first server in this registry that has it.
	Names Names
	// Prefix returns what precedes the names of a server's tools. If it is nil or returns "",
	// the rules for names that are taken apply.
	Prefix func(server string) string
	// Project says of each tool what Tool.OfProject and Tool.Replaces are. If nil, they stay as
	// the source has set them.
	Project func(*Tool) (ofProject, replaces bool)
	// Builtin returns the built-in tool with a name or alias, ignoring case; nil if there is
	// none. A nil Builtin knows none.
	Builtin func(name string) *Namesake
	// MaxDescription is the maximum length of a description in bytes; longer ones are
	// cut. 0 means no limit.
	MaxDescription int64
	// Begins is called when a source begins, and ends when it has finished, from the goroutine
	// of the source. May be nil.
	Begins func(source string) (ends func())
	// Observe is called when a source finishes, from the goroutine of the
	// source. May be nil.
	Observe func(SourceReport)
	// Found is called with what a source found, and returns the tools to register. May be
	// nil.
	Found func(ctx context.Context, source string, tools []Tool, diags []Diagnostic, err error) []Tool
}

// finding is the outcome of one source.
type finding struct {
	once   sync.Once
	done   chan struct{} // closed when the other fields are set
	tools  []Tool
	diags  []Diagnostic
	report SourceReport
}

// Overrides are the overrides in the settings. Their keys are any of the names of a
// tool.
type Overrides interface {
	// Has reports whether there is an override with this key.
	Has(name string) bool
	// NewName returns the name that the override with this key gives its tool, or "".
	NewName(name string) string
	// IsProjects reports whether a project's settings give the tool that name.
	IsProjects(name string) bool
	// Reshape returns the tool as changed by the override with one of these keys. The
	// tool is quarantined if several overrides apply to it or if its override does
	// not match it.
	Reshape(ctx context.Context, t *Tool, names []string) Tool
}
