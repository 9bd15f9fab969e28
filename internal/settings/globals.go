package settings

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/decode"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// Globals holds the global flags and their TOOLREG_* variables: a flag overrides
// its variable, and the variable overrides the settings files. A tag names the
// flag that a field holds.
type Globals struct {
	Root         string   `flag:"root"` // --root, TOOLREG_ROOT
	Files        []string // --settings, TOOLREG_SETTINGS (separated like PATH)
	NoProject    bool     `flag:"no-project-settings"` // --no-project-settings, TOOLREG_NO_PROJECT_SETTINGS
	NoUser       bool     `flag:"no-user-settings"`    // --no-user-settings, TOOLREG_NO_USER_SETTINGS
	TrustProject bool     `flag:"trust-project"`       // --trust-project, TOOLREG_TRUST_PROJECT
	// Timeout is --timeout or TOOLREG_TIMEOUT: the limit of a call; see TimeoutSet.
	Timeout    time.Duration `flag:"timeout"`
	TimeoutSet bool          // distinguishes no limit (0) from not given
	// ConnectTimeout is --connect-timeout or TOOLREG_CONNECT_TIMEOUT: the limit of each server; see
	// ConnectSet.
	ConnectTimeout time.Duration `flag:"connect-timeout"`
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
	Locked         bool          `flag:"locked"`   // --locked, TOOLREG_LOCKED: refuse tools that differ from the lock
	Fresh          bool          `flag:"fresh"`    // --fresh, TOOLREG_FRESH: use no kept server
	NoPager        bool          `flag:"no-pager"` // --no-pager, TOOLREG_NO_PAGER
	Record         string        `flag:"record"`   // --record, TOOLREG_RECORD: file for a recording
	Replay         string        `flag:"replay"`   // --replay, TOOLREG_REPLAY: recording that answers for the sources
	Channel        string        `flag:"channel"`  // --channel, TOOLREG_CHANNEL: it overrides context.channel
}

// globalRows describes the global flags as if they were settings. Their names are
// those of the flags, except for one that is also a setting; their variables are
// TOOLREG_ followed by the flag in upper case.
func globalRows() []table.Row {
	rows := make([]table.Row, 0, 24)
	for _, name := range []string{
		"no-project-settings", "no-user-settings", "trust-project", "non-interactive", "yes", "json",
		"quiet", "verbose", "refresh", "cached", "locked", "fresh", "no-pager",
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
// whole milliseconds or Go durations. The error is a [*document.Error].
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
		Color:      "auto",
		Files:      s.list("settings", given["settings"], filepath.SplitList),
		MCP:        s.list("mcp", given["mcp"], splitter("\n")),
		Imports:    splitter(",")(strings.Join(s.list("import", given["import"], splitter(",")), ",")),
		TimeoutSet: given["timeout"] != nil, ConnectSet: given["connect-timeout"] != nil,
	}
	for v, i := reflect.ValueOf(&g).Elem(), 0; i < v.NumField(); i++ {
		if n := given[v.Type().Field(i).Tag.Get("flag")]; n != nil {
			decode.Value(v.Field(i).Addr().Interface(), nil, n, Origin{})
		}
	}
	return g
}

// otherVariables are variables that are read elsewhere, or that toolreg sets for
// its child processes.
var otherVariables = []string{
	"TOOLREG_CONTEXT", "TOOLREG_PAGER", "TOOLREG_DEPTH", "TOOLREG_TOOL",
	"TOOLREG_PROJECT_ROOT", "TOOLREG_PLUGIN", "TOOLREG_CHILD", "TOOLREG_SERVER", "TOOLREG_TOKEN",
}

// variables returns the names of all variables that have a meaning.
func variables(x *table.Index) []string {
	known := slices.Clone(otherVariables)
	for _, row := range globalRows() {
		known = append(known, globalVariable(row.Name))
	}
	for i := range x.Rows {
		known = append(known, x.Rows[i].Variable())
	}
	return known
}

// unknownVariables warns about variables with our prefix that have no meaning,
// because a mistyped name would otherwise silently have no effect.
func unknownVariables(x *table.Index, environ []string) (out []registry.Diagnostic) {
	const prefix = "TOOLREG_"
	var known, bare []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix) || value == "" {
			continue
		}
		if known == nil {
			known = variables(x)
			for _, name := range known {
				bare = append(bare, strings.TrimPrefix(name, prefix))
			}
		}
		if slices.Contains(known, name) {
			continue
		}
		hint := "variables are named after flags and settings: TOOLREG_JSON is --json, TOOLREG_SHELL_TIMEOUT is shell.timeout"
		// Compare without the prefix, which all of them share.
		if near := registry.Near(strings.TrimPrefix(name, prefix), bare); len(near) > 0 && near[0] != "" {
			hint = fmt.Sprintf("did you mean %q?", prefix+near[0])
		}
		out = append(out, registry.Warning("unknown_variable", "",
			fmt.Sprintf("unknown variable %q has no effect", name), hint))
	}
	return out
}

// scalars lets viper decide whether a flag, a variable or a settings file
// determines a value. Viper sees only the fixed names of the table, because it
// would lower-case and split names that users choose. Variables come from the
// process's own environment.
type scalars struct {
	viper    *viper.Viper
	flags    *pflag.FlagSet // may be nil
	problems []document.Problem
	faults   layers.Faults
}

func newScalars(flags *pflag.FlagSet) *scalars {
	s := &scalars{viper: viper.NewWithOptions(viper.KeyDelimiter("\x00")), flags: flags, faults: layers.Faults{}}
	for _, row := range globalRows() {
		s.bind(row.Name, globalVariable(row.Name))
		if f := s.flag(row.Name); f != nil {
			_ = s.viper.BindPFlag(row.Name, f) // fails only for a nil flag
		}
	}
	return s
}

func flagName(key string) string {
	if key == approvalMode {
		return "approval-mode"
	}
	return key
}

func globalVariable(key string) string {
	return "TOOLREG_" + strings.ToUpper(strings.ReplaceAll(flagName(key), "-", "_"))
}

func (s *scalars) flag(key string) *pflag.Flag {
	if s.flags == nil {
		return nil
	}
	return s.flags.Lookup(flagName(key))
}

func (s *scalars) bind(key, variable string) {
	_ = s.viper.BindEnv(key, variable) // fails only without a key
}

// apply puts the scalars that flags and variables set into the merged settings,
// overriding those of the files. Viper gets pointers to the entries of the files,
// so that it does not convert the values and each keeps its origin.
func (s *scalars) apply(m *merge.Merged) {
	config := map[string]any{}
	for i := range m.Index.Rows {
		row := &m.Index.Rows[i]
		variable := row.Variable()
		if variable == "" {
			continue
		}
		s.bind(row.Name, variable)
		if all := m.Of(row); len(all) > 0 {
			config[row.Name] = &all[len(all)-1]
		}
	}
	_ = s.viper.MergeConfigMap(config) // cannot fail for a map with string keys
	for i := range m.Index.Rows {
		row := &m.Index.Rows[i]
		var flag *pflag.Flag
		if row.Name == approvalMode {
			flag = s.flag(approvalMode)
		}
		if text, origin, ok := s.value(row.Name, flag, row.Variable()); ok {
			m.Add(layers.Setting{Row: row, Key: row.Name, Value: s.parse(row, text, origin), Origin: origin})
		}
	}
	maps.Copy(m.Faults, s.faults)
}

// value returns the text of the flag or variable for a key. ok is false if
// neither is set, or if the key has no variable.
func (s *scalars) value(key string, flag *pflag.Flag, variable string) (text string, origin Origin, ok bool) {
	if variable == "" {
		return "", Origin{}, false
	}
	if flag != nil && flag.Changed {
		return flag.Value.String(), Origin{Scope: ScopeFlag, Name: "--" + flag.Name}, true
	}
	if os.Getenv(variable) == "" {
		return "", Origin{}, false
	}
	text, ok = s.viper.Get(key).(string)
	return text, Origin{Scope: ScopeEnv, Name: variable}, ok
}

// parse checks the text of a flag or variable like a value in a file.
func (s *scalars) parse(row *table.Row, text string, origin Origin) *jsonx.Value {
	n := row.FromText(text)
	checked := layers.CheckValue(nil, row, row.Name, n, origin) // only objects need the index
	s.problems = append(s.problems, checked.Problems...)
	if problems := checked.Faults[n]; problems != nil {
		s.faults[n] = problems
	}
	return n
}

// global returns the checked value of a global flag; nil if neither the flag
// nor its variable is given.
func (s *scalars) global(row *table.Row) *jsonx.Value {
	text, origin, ok := s.value(row.Name, s.flag(row.Name), globalVariable(row.Name))
	if !ok {
		return nil
	}
	before := len(s.problems)
	n := s.parse(row, text, origin)
	for i := before; i < len(s.problems); i++ { // the flag or variable is named in front
		s.problems[i].Message = strings.TrimPrefix(s.problems[i].Message, row.Name+": ")
	}
	if len(s.problems) > before {
		return nil
	}
	return n
}

// listOf returns the values of a flag that may be given several times; nil if it is
// not given.
func (s *scalars) listOf(key string) []string {
	if f := s.flag(key); f != nil && f.Changed {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			return list.GetSlice()
		}
	}
	return nil
}

// list returns the values of a flag, or those in its variable.
func (s *scalars) list(key string, variable *jsonx.Value, split func(string) []string) []string {
	if given := s.listOf(key); given != nil {
		return given
	}
	if text := variable.Text(); text != "" {
		return split(text)
	}
	return nil
}

// splitter returns a function that returns the parts of a text that are not blank.
func splitter(separator string) func(text string) []string {
	return func(text string) (out []string) {
		for part := range strings.SplitSeq(text, separator) {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
		return out
	}
}

// Command returns a command line that applies to the same files as this run.
func (g *Globals) Command(command string) string {
	words := []string{"toolreg"}
	if g.Root != "" {
		words = append(words, "--root", text.ShellWord(g.Root))
	}
	for _, p := range g.Imports {
		words = append(words, "--import", text.ShellWord(p))
	}
	return strings.Join(append(words, command), " ")
}
