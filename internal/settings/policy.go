package settings

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
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
