package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Globals holds the global flags and their TOOLREG_* variables: a flag overrides
// its variable, and the variable overrides the settings files. A tag names the
// flag that a field holds.
type Globals struct {
	Root           string        `flag:"root"` // --root, TOOLREG_ROOT
	Files          []string      // --settings, TOOLREG_SETTINGS (separated like PATH)
	NoProject      bool          `flag:"no-project-settings"` // --no-project-settings, TOOLREG_NO_PROJECT_SETTINGS
	NoUser         bool          `flag:"no-user-settings"`    // --no-user-settings, TOOLREG_NO_USER_SETTINGS
	TrustProject   bool          `flag:"trust-project"`       // --trust-project, TOOLREG_TRUST_PROJECT
	ApprovalMode   string        `flag:"approvalMode"`        // --approval-mode, TOOLREG_APPROVAL_MODE; "" means not given
	Timeout        time.Duration `flag:"timeout"`             // --timeout, TOOLREG_TIMEOUT: limit of a call; see TimeoutSet
	TimeoutSet     bool          // distinguishes no limit (0) from not given
	ConnectTimeout time.Duration `flag:"connect-timeout"` // --connect-timeout, TOOLREG_CONNECT_TIMEOUT: limit of each server; see ConnectSet
	ConnectSet     bool          // distinguishes no limit (0) from not given
	NonInteractive bool          `flag:"non-interactive"` // --non-interactive, TOOLREG_NON_INTERACTIVE
	Yes            bool          `flag:"yes"`             // --yes, TOOLREG_YES
	JSON           bool          `flag:"json"`            // --json, TOOLREG_JSON
	JQ             string        `flag:"jq"`              // --jq, TOOLREG_JQ
	Color          string        `flag:"color"`           // --color, TOOLREG_COLOR: auto (default), always, never
	Quiet          bool          `flag:"quiet"`           // --quiet, TOOLREG_QUIET
	Verbose        bool          `flag:"verbose"`         // --verbose, TOOLREG_VERBOSE
	Imports        []string      // --import, TOOLREG_IMPORT (separated by commas)
	MCP            []string      // --mcp, TOOLREG_MCP (one per line): additional servers for this run
	Refresh        bool          `flag:"refresh"`  // --refresh, TOOLREG_REFRESH: ignore and replace cached tool lists
	Cached         bool          `flag:"cached"`   // --cached, TOOLREG_CACHED: use only cached tool lists
	Fresh          bool          `flag:"fresh"`    // --fresh, TOOLREG_FRESH: use no kept server
	NoPager        bool          `flag:"no-pager"` // --no-pager, TOOLREG_NO_PAGER
	Record         string        `flag:"record"`   // --record, TOOLREG_RECORD: file for a recording
	Replay         string        `flag:"replay"`   // --replay, TOOLREG_REPLAY: recording that answers for the sources
	Channel        string        `flag:"channel"`  // --channel, TOOLREG_CHANNEL; if empty, Load sets it from context.channel
}

// globalRows describes the global flags as if they were settings. Their names are
// those of the flags, except for one that is also a setting; their variables are
// TOOLREG_ followed by the flag in upper case.
func globalRows() []table.Row {
	rows := make([]table.Row, 0, 24)
	for _, name := range []string{
		"no-project-settings", "no-user-settings", "trust-project", "non-interactive", "yes", "json",
		"quiet", "verbose", "refresh", "cached", "fresh", "no-pager",
	} {
		rows = append(rows, table.Row{Name: name, Type: table.Bool})
	}
	for _, name := range []string{"settings", "import", "mcp", "root", "channel", "jq", "record", "replay"} {
		rows = append(rows, table.Row{Name: name, Type: table.String})
	}
	return append(rows,
		table.Row{Name: "color", Type: table.Choice, Choices: []string{"auto", "always", "never"}},
		table.Row{Name: approvalMode, Type: table.Choice, Choices: table.ApprovalModes()},
		table.Row{Name: "timeout", Type: table.Duration}, table.Row{Name: "connect-timeout", Type: table.Duration})
}

// approvalMode is the one setting that is also a global flag.
const approvalMode = "approvalMode"

// ResolveGlobals reads only the global flags and their variables, without any
// settings file. Flags may be nil or lack some of the flags. Variables come
// from the process's environment; an empty one is treated as unset. Durations are
// whole milliseconds or Go durations. The error is an [*document.Error].
func ResolveGlobals(flags *pflag.FlagSet) (Globals, error) {
	s := newScalars(flags)
	return s.globals(), document.NewError(s.problems)
}

func (s *scalars) globals() Globals {
	given := map[string]*jsonx.Value{}
	for _, row := range globalRows() {
		given[row.Name] = s.global(&row)
	}
	g := Globals{
		Color: "auto", Files: s.files(given["settings"]), Imports: s.imports(given["import"]), MCP: s.servers(given["mcp"]),
		TimeoutSet: given["timeout"] != nil, ConnectSet: given["connect-timeout"] != nil,
	}
	for v, i := reflect.ValueOf(&g).Elem(), 0; i < v.NumField(); i++ {
		if n := given[v.Type().Field(i).Tag.Get("flag")]; n != nil {
			set(v.Field(i), nil, n, Origin{})
		}
	}
	return g
}

// otherVariables are variables that are read elsewhere, or that toolreg sets for
// its child processes.
var otherVariables = []string{
	"TOOLREG_CONTEXT", "TOOLREG_LOCKED", "TOOLREG_PAGER", "TOOLREG_DEPTH", "TOOLREG_TOOL",
	"TOOLREG_PROJECT_ROOT", "TOOLREG_PLUGIN", "TOOLREG_CHILD", "TOOLREG_SERVER", "TOOLREG_TOKEN",
}

// variables returns the names of all variables that have a meaning.
func (l *loader) variables() []string {
	known := slices.Clone(otherVariables)
	for _, row := range globalRows() {
		known = append(known, globalVariable(row.Name))
	}
	for i := range l.index.Rows {
		known = append(known, l.index.Rows[i].Variable())
	}
	return known
}

// unknownVariables warns about variables with our prefix that have no meaning,
// because a mistyped name would otherwise silently have no effect.
func (l *loader) unknownVariables() {
	const prefix = "TOOLREG_"
	var known, bare []string
	for _, kv := range l.opts.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix) || value == "" {
			continue
		}
		if known == nil {
			known = l.variables()
			for _, name := range known {
				bare = append(bare, strings.TrimPrefix(name, prefix))
			}
		}
		if slices.Contains(known, name) {
			continue
		}
		hint := "variables are named after flags and settings: TOOLREG_JSON is --json, TOOLREG_SHELL_TIMEOUT is shell.timeout"
		// Compare without the prefix, which all of them share.
		if near := registry.Near(strings.TrimPrefix(name, prefix), bare); len(near) > 0 {
			hint = fmt.Sprintf("did you mean %q?", prefix+near[0])
		}
		l.warn("unknown_variable", fmt.Sprintf("unknown variable %q has no effect", name), hint)
	}
}
