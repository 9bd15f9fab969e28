package registry

import (
	"context"
	"sync"
)

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
