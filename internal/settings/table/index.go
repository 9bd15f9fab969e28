package table

import (
	"fmt"
	"slices"
	"strings"
)

// Index finds settings by either of their names, and the groups formed by the
// dots in them.
type Index struct {
	Rows   []Row // in the order of the documentation
	byName map[string]*Row
	groups map[string]bool
}

// NewIndex returns an Index of all settings.
func NewIndex() *Index {
	rows := all()
	x := &Index{Rows: rows, byName: make(map[string]*Row, 2*len(rows)), groups: map[string]bool{}}
	for i := range rows {
		r := &rows[i]
		for _, name := range []string{r.Name, r.Twin} {
			if name == "" {
				continue
			}
			x.byName[name] = r
			for j, c := range name {
				if c == '.' {
					x.groups[name[:j]] = true
				}
			}
		}
	}
	return x
}

// Row returns the setting with a name or alternative name, or nil if there is
// none.
func (x *Index) Row(name string) *Row { return x.byName[name] }

// IsGroup reports whether name is a group, that is, a prefix of dotted names.
func (x *Index) IsGroup(name string) bool { return x.groups[name] }

// Names lists the keys that a group ("" means the top level) may contain in a file,
// sorted.
func (x *Index) Names(group string) []string {
	var out []string
	for _, key := range x.Keys() {
		rest, ok := key, true
		if group != "" {
			rest, ok = strings.CutPrefix(key, group+".")
		}
		if ok {
			first, _, _ := strings.Cut(rest, ".")
			out = append(out, first)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Keys lists the names and alternative names of all settings in use, sorted.
func (x *Index) Keys() []string {
	var out []string
	for name, r := range x.byName {
		if !r.Foreign {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// UnknownKeyError reports that a name is neither a setting nor a group of
// settings.
type UnknownKeyError struct {
	Key  string
	Near []string // similar names
}

func (e *UnknownKeyError) Error() string {
	msg := fmt.Sprintf("unknown setting %q", e.Key)
	if len(e.Near) > 0 {
		msg += fmt.Sprintf("; did you mean %q?", e.Near[0])
	}
	return msg
}
