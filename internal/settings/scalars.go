package settings

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// scalars lets viper decide which of flag, variable and settings file gives a
// value. It sees the fixed names of the table alone: it would lower-case and
// split the names that people choose. Variables come from the process's own
// environment.
type scalars struct {
	viper    *viper.Viper
	flags    *pflag.FlagSet
	flagOf   map[string]string // key -> flag
	problems []document.Problem
}

// globalFlags maps the keys of the global flags to the flags. Their variables
// are TOOLREG_ and the flag in capitals.
func globalFlags() map[string]string {
	out := map[string]string{"approvalMode": "approval-mode"}
	for _, f := range []string{"root", "settings", "no-project-settings", "no-user-settings", "trust-project", "timeout", "connect-timeout",
		"non-interactive", "yes", "json", "color", "quiet", "verbose", "channel", "import", "refresh", "cached"} {
		out[f] = f
	}
	return out
}

func newScalars(flags *pflag.FlagSet) *scalars {
	s := &scalars{viper: viper.NewWithOptions(viper.KeyDelimiter("\x00")), flags: flags, flagOf: globalFlags()}
	for _, key := range slices.Sorted(maps.Keys(s.flagOf)) {
		flag := s.flagOf[key]
		s.bind(key, flagVariable(flag))
		if flags == nil {
			continue
		}
		if f := flags.Lookup(flag); f != nil {
			_ = s.viper.BindPFlag(key, f) // fails for a nil flag alone
		}
	}
	return s
}

func flagVariable(flag string) string {
	return "TOOLREG_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func (s *scalars) bind(key, variable string) {
	_ = s.viper.BindEnv(key, variable) // fails without a key alone
}

// addSettings hands viper the merged scalars of the settings files. The values
// are opaque to it, so that none is converted and each keeps its origin.
func (s *scalars) addSettings(m *merged) {
	config := map[string]any{}
	for i := range m.index.Rows {
		set := &m.index.Rows[i]
		if variable := set.Variable(); variable != "" {
			s.bind(set.Name, variable)
		} else {
			continue
		}
		if all := m.entries[set]; len(all) > 0 {
			config[set.Name] = &all[len(all)-1]
		}
	}
	_ = s.viper.MergeConfigMap(config) // fails for no map of strings
}

// value returns what stands for a key: the entry of a settings file, or the
// text of a flag or variable with its origin. ok is false where nothing is set.
func (s *scalars) value(key, variable string) (fromFile *entry, text string, origin Origin, ok bool) {
	if flag := s.changed(key); flag != nil {
		return nil, flag.Value.String(), Origin{Scope: ScopeFlag, Name: "--" + flag.Name}, true
	}
	switch v := s.viper.Get(key).(type) {
	case *entry:
		return v, "", v.origin, true
	case string:
		if variable == "" || os.Getenv(variable) == "" { // the default of a flag
			return nil, "", Origin{}, false
		}
		return nil, v, Origin{Scope: ScopeEnv, Name: variable}, true
	}
	return nil, "", Origin{}, false
}

func (s *scalars) changed(key string) *pflag.Flag {
	if s.flags == nil || s.flagOf[key] == "" {
		return nil
	}
	if f := s.flags.Lookup(s.flagOf[key]); f != nil && f.Changed {
		return f
	}
	return nil
}

// settle puts the scalars that flags and variables set into the merged
// settings, over those of the files.
func (s *scalars) settle(m *merged) {
	for i := range m.index.Rows {
		set := &m.index.Rows[i]
		variable := set.Variable()
		if variable == "" {
			continue
		}
		_, text, origin, ok := s.value(set.Name, variable)
		if !ok || origin.Scope < ScopeEnv {
			continue
		}
		n := s.parse(set, text, origin)
		m.entries[set] = append(m.entries[set], entry{set: set, key: set.Name, node: n, origin: origin})
	}
}

// parse checks the text of a flag or variable like the value in a file.
func (s *scalars) parse(set *table.Row, text string, origin Origin) *document.Node {
	n := set.FromText(text)
	r := reader{layer: &layer{scope: origin.Scope, file: origin.Name}}
	r.check(set, set.Name, n)
	s.problems = append(s.problems, r.layer.problems...)
	return n
}

// global returns the checked value of a global flag; nil where neither the flag
// nor its variable is given.
func (s *scalars) global(key string, typ table.Type, choices ...string) *document.Node {
	_, text, origin, ok := s.value(key, flagVariable(s.flagOf[key]))
	if !ok || origin.Scope < ScopeEnv {
		return nil
	}
	before := len(s.problems)
	n := s.parse(&table.Row{Name: key, Type: typ, Choices: choices}, text, origin)
	if len(s.problems) > before {
		return nil
	}
	return n
}

func (s *scalars) paths(key string) []string {
	if f := s.changed(key); f != nil {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			return list.GetSlice()
		}
	}
	if n := s.global(key, table.String); n != nil {
		return filepath.SplitList(n.Text)
	}
	return nil
}

// words are the values of a flag that may be given several times, or the words
// of its variable, separated by commas.
func (s *scalars) words(key string) []string {
	var given []string
	if f := s.changed(key); f != nil {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			given = list.GetSlice()
		}
	} else if n := s.global(key, table.String); n != nil {
		given = []string{n.Text}
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
