package settings

import (
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Audit configures the log of calls.
type Audit struct {
	Enabled bool  `setting:"audit.enabled"` // default true
	MaxSize int64 `setting:"audit.maxSize"` // maximum size of one log in bytes; default 10 MiB
	Keep    int   `setting:"audit.keep"`    // number of rotated logs to keep; default 5
}

// The values of a tool's option log.
const (
	LogCalls  = "calls"  // the default: without the values of params
	LogParams = "params" // with the values of params
	LogNone   = "none"   // only refusals
)

// ToolOption is one entry of toolOptions: options for the tools whose name matches
// the pattern. A nil field is not set.
type ToolOption struct {
	Pattern    string         `setting:"*"` // a tool's name, or a glob
	Timeout    *time.Duration `setting:"timeout"`
	MaxOutput  *int64         `setting:"maxOutput"` // bytes
	Retries    *int           `setting:"retries"`
	RetryDelay *time.Duration `setting:"retryDelay"`
	Cache      *time.Duration `setting:"cache"`
	Log        string         `setting:"log"` // LogCalls, LogParams, LogNone; "" means not set
	Origin     Origin
}

// Hook is an entry of one of the lists in hooks: a command that runs around calls.
type Hook struct {
	Event   string        // beforeCall, afterCall, onRegister, onDiagnostic
	Command Command       `setting:"command"`
	Tools   []string      `setting:"tools"` // names or globs; empty means all
	Timeout time.Duration `setting:"timeout"`
	Layer   int           // of its file; files are read in the order of their layers
	Origin  Origin
}

// ToolOptions is the combination of all entries of toolOptions that match a tool; its
// pattern is empty.
type ToolOptions struct {
	ToolOption
	Named bool // whether an entry names the tool exactly, not by a glob
	// Shortened is set if the project asks for a longer cache than it may have.
	Shortened bool
}

func (o *ToolOption) matches(t *registry.Tool) bool {
	pattern := registry.NameIn(o.Pattern)
	matches := func(name string) bool { return text.MatchName(pattern, name) }
	return matches(t.Name) || slices.ContainsFunc(t.Spellings(), matches)
}

// Silence is an entry of check.silence: findings of servers check that are accepted.
type Silence struct {
	Rule   string `setting:"rule"`
	Reason string `setting:"reason"`
	Server string `setting:"server"` // a name or glob; "" means all
	Tool   string `setting:"tool"`   // a name or glob of tools, prompts or resources; "" means all
	Origin Origin
}
