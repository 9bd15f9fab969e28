package settings

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// ExampleCalls are the example calls of a rule.
type ExampleCalls []ExampleCall

// DecodeSetting reads a checked list of calls; o is the origin of its rule.
func (c *ExampleCalls) DecodeSetting(list *jsonx.Value, o Origin) {
	for _, n := range list.Items {
		o.Line, o.Col = n.Place()
		call := ExampleCall{Tool: n.Get("tool").Text(), Line: n.Text(), Origin: o}
		if params := n.Get("params"); params != nil {
			call.Params = params.JSON()
		}
		*c = append(*c, call)
	}
}

// profilesKey is the setting serve.profiles, which merges by name.
const profilesKey = "serve.profiles"

// Profile is an entry of serve.profiles: what some clients of serve are offered.
type Profile struct {
	Name     string   `setting:"*"`
	Preset   string   `setting:"preset"`
	Source   []string `setting:"source"` // globs
	Server   []string `setting:"server"` // globs
	Category []string `setting:"category"`
	Tag      []string `setting:"tag"`
	Expose   string   `setting:"expose"` // all, search, scripts
	Always   []string `setting:"always"` // globs
	Groups   []string `setting:"groups"` // globs; without any the profile is for everybody
	Origin   Origin
}

// Rule is one entry of policy.rules.
type Rule struct {
	Tool     string `setting:"tool"`
	Source   string `setting:"source"`
	Server   string `setting:"server"`
	Category string `setting:"category"`
	Command  string `setting:"command"`
	Path     string `setting:"path"`
	Client   string `setting:"client"`
	Group    string `setting:"group"`
	Prompt   string `setting:"prompt"`
	Resource string `setting:"resource"`
	Profile  string // of serve, whose rule it is; "" means for all
	Layer    int    // of its file; files are read in the order of their layers
	When     string `setting:"when"`
	Decision string `setting:"decision"` // allow, sandbox, ask, deny
	Reason   string `setting:"reason"`

	Annotations map[string]bool `setting:"annotations"` // by name
	Match       ExampleCalls    `setting:"match"`
	NotMatch    ExampleCalls    `setting:"notMatch"`
	Origin      Origin
}

// ExampleCall is a call that a rule must match, or must not match.
type ExampleCall struct {
	Tool   string          // "" for a shell line
	Params json.RawMessage // nil for none
	Line   string          // a shell command line
	Origin Origin
}

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
	// Shortened is set if the project sets a longer cache time than it may.
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
