package table

import (
	"slices"
	"strings"
	"testing"
)

func TestTableIsConsistent(t *testing.T) {
	seen, variables := map[string]bool{}, map[string]string{}
	x := NewIndex()
	rows := x.Rows
	for i := range rows {
		s := &rows[i]
		for _, name := range []string{s.Name, s.Twin} {
			if name != "" && seen[name] {
				t.Errorf("%s is in the table twice", name)
			}
			seen[name] = true
		}
		if s.Doc == "" && !s.Foreign {
			t.Errorf("%s has no documentation", s.Name)
		}
		if v := s.Variable(); v != "" {
			if variables[v] != "" {
				t.Errorf("variable %s belongs to both %s and %s", v, variables[v], s.Name)
			}
			variables[v] = s.Name
		}
	}
	for flag, key := range map[string]string{"TOOLREG_TOOL": "", "TOOLREG_PROJECT_ROOT": "", "TOOLREG_ROOT": "", "TOOLREG_APPROVAL_MODE": "approvalMode"} {
		if variables[flag] != key {
			t.Errorf("%s is the variable of %q, want %q", flag, variables[flag], key)
		}
	}
	for group := range x.groups {
		if s := x.Row(group); s != nil && !s.Foreign && s.Type != Bool { // true is short for a group
			t.Errorf("%s is both a setting and a group", s.Name)
		}
	}
}

// TestRowsSayWhatTheyName checks that a row whose text or name is about names of tools or servers
// says whose they are, so that names that match nothing are told.
func TestRowsSayWhatTheyName(t *testing.T) {
	apart := []string{"mcpServers", "openapi", "plugins.paths", "plugins.settings", "path", "sandbox.plugins.read", "sandbox.plugins.write"} // define them, or hold paths
	var visit func(in string, rows []Row)
	visit = func(in string, rows []Row) {
		for i := range rows {
			r := &rows[i]
			visit(in+r.Name+".", r.Fields)
			about := strings.Contains(strings.ToLower(r.Doc), "glob")
			for _, word := range []string{"tool", "server", "source", "plugin"} {
				about = about || strings.Contains(strings.ToLower(r.Name), word) && slices.Contains([]Type{Strings, Named, RawNamed}, r.Type)
			}
			if about && r.Names == NoNames && !r.Foreign && !slices.Contains(apart, r.Name) {
				t.Errorf("%s%s does not say what its values are names of", in, r.Name)
			}
		}
	}
	visit("", NewIndex().Rows)
}
