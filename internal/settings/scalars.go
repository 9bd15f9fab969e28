package settings

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

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

// flagName returns the name of the flag for a global value.
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
	if len(s.problems) > before {
		return nil
	}
	return n
}

// list returns the values of a flag that may be given several times; nil if it is
// not given.
func (s *scalars) list(key string) []string {
	if f := s.flag(key); f != nil && f.Changed {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			return list.GetSlice()
		}
	}
	return nil
}

// files returns the settings files that the flag or its variable names.
func (s *scalars) files(variable *jsonx.Value) []string {
	if given := s.list("settings"); given != nil {
		return given
	}
	if text := variable.Text(); text != "" {
		return filepath.SplitList(text)
	}
	return nil
}

// imports returns the words of the flag or of its variable, separated by commas.
func (s *scalars) imports(variable *jsonx.Value) []string {
	given := s.list("import")
	if given == nil {
		given = []string{variable.Text()}
	}
	var out []string
	for _, text := range given {
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				out = append(out, word)
			}
		}
	}
	return out
}

// servers returns the servers that the flag gives, or the lines of its variable.
func (s *scalars) servers(variable *jsonx.Value) []string {
	if given := s.list("mcp"); given != nil {
		return given
	}
	var out []string
	for line := range strings.Lines(variable.Text()) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
