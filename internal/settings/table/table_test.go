package table

import (
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
