package registry

import (
	"context"
	"sync"
	"sync/atomic"
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
	// Outside returns why only steps of composites may call a tool, which then keeps its name; nil
	// if everybody may. Outside may be nil.
	Outside Filter
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
	// Builtin returns the built-in tool with a name or alias, ignoring case; nil if there is none.
	// A nil Builtin finds none.
	Builtin func(name string) *Namesake
	// MaxDescription is the maximum length of a description in bytes; longer ones are
	// cut. 0 means no limit.
	MaxDescription int64
	// Begins is called when a source begins, from its goroutine. The function that it returns is
	// called when the source has finished. Begins may be nil.
	Begins func(source string) (ends func())
	// Observe is called when a source finishes, from the goroutine of the
	// source. May be nil.
	Observe func(SourceReport)
	// Found is called with what a source found, and returns the tools to register. May be
	// nil.
	Found func(ctx context.Context, source string, tools []Tool, diags []Diagnostic, err error) []Tool
}

type finding struct {
	once   sync.Once
	done   atomic.Bool // whether the other fields are set
	tools  []Tool
	diags  []Diagnostic
	report SourceReport

	brokenOff bool // it failed because its context ended
}

// Overrides are the overrides in the settings. Their keys are any of the names of a
// tool.
type Overrides interface {
	// Has reports whether there is an override with this key.
	Has(name string) bool
	// IsOwn reports whether there is one that does not come from a project.
	IsOwn(name string) bool
	// NewName returns the name that the override with this key gives its tool, or "".
	NewName(name string) string
	// IsProjects reports whether a project's settings give the tool that name.
	IsProjects(name string) bool
	// Reshape returns the tool as changed by the override with one of these keys. The
	// tool is quarantined if several overrides apply to it or if its override does
	// not match it.
	Reshape(ctx context.Context, t *Tool, names []string) Tool
}

// CodeNameKept is the code of the diagnostic about a tool that is registered as server__tool,
// because its plain name belongs to another server.
const CodeNameKept = "name_kept"

// codeNameLent is the code of the diagnostic about a tool whose name allows nothing, see
// [Tool.Lent].
const codeNameLent = "name_lent"

// Owner says who may have a name. The zero value is a name that is free.
type Owner struct {
	// Kept is set if only tools of Server may have the name. If Server is "", no server's tool may.
	Kept   bool
	Server string
	// Unsure is set if nothing says which server the name belongs to, so that it goes to the first
	// that answers.
	Unsure bool
	// Lent says that only the lock file of an untrusted project gives the name to Server; Other
	// says that something the person trusts gives it to another server.
	Lent, Other bool
	// Foreign says that Server is not in the person's own settings, or has the name only by Lent.
	Foreign bool
}

// KeptName is a name that is kept for a server.
type KeptName struct {
	Name, Server string
	IsAPI        bool   // whether the server is an API
	Absent       string // why the server is not in the registry; "" if it should be
	Setting      string // origin of the setting that is the reason
}

// GivenName is a name that a registry gave to a tool of a server.
type GivenName struct {
	Name, Server string
	Unsure       bool // a server before it failed and may have the name
	Lent         bool // see [Tool.Lent]
}

// Names decides which server a name belongs to, so that no other server's tool gets it. It is asked
// about plain names of servers' tools and about names that begin with "server__". It is safe for
// concurrent use.
type Names interface {
	// Owner returns who may have a name.
	Owner(name string) Owner
	// Kept returns the plain names that are kept, sorted.
	Kept() []KeptName
	// Keep remembers the names that a registry gave. It returns false if one of them belongs to
	// another server by now; the registry must then be built again.
	Keep(ctx context.Context, given []GivenName) bool
}
