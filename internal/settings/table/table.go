// Package table holds every setting: its name and twin, its type, how places
// merge, its default, its documentation, and when a value of it loosens what is
// allowed.
//
// From the one table come the reader and the merging of package settings, the
// check for unknown keys, the variables, the JSON Schema, the reference of the
// documentation, what is masked when it is shown, and what package consent asks
// about. A setting is added by adding a row.
package table

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/settings/document"
)

// Type is what a setting takes.
type Type int

// The types of settings.
const (
	String   Type = iota
	Bool          // true or false
	Int           // a whole number, 0 or more
	Duration      // whole milliseconds, or a string such as "30s"
	Size          // whole bytes, or a string such as "10MiB"
	Choice        // one of Row.Choices
	Command       // a string that is split into words, or a list of words
	Strings       // a list of strings
	Pairs         // an object of strings: env, headers
	Object        // an object with Row.Fields
	Named         // an object of names, each with an object of Row.Fields
	Objects       // a list of objects with Row.Fields
	Raw           // anything; the feature it belongs to checks it
	RawNamed      // an object of names, each with anything
)

// isScalar reports whether a variable or a flag can carry a value of the type.
func (t Type) isScalar() bool { return t <= Command }

// Merge is what a later place does to the value of an earlier one.
type Merge int

// The rules of merging.
const (
	Replace Merge = iota // the later value stands
	Unite                // exclusion and deny lists, and hooks: the values of all places count
	ByName               // the later entry of one name stands
)

// Row is one setting, or one field of an object.
type Row struct {
	Name     string // dotted; a field's own name
	Twin     string // the other spelling, dotted
	Type     Type
	Merge    Merge
	Doc      string
	Default  string // as JSON; "" = none
	Choices  []string
	Fields   []Row
	Required bool
	Secret   bool                      // values are masked wherever they are shown
	Runs     bool                      // commands inside a raw value run: the trust question shows them
	Loosens  func(*document.Node) bool // whether a value allows more than the default does; nil = none does
	Foreign  bool                      // of the Gemini CLI, without meaning here
}

// Variable returns the name of the setting's environment twin; "" if it cannot
// have one.
func (r *Row) Variable() string {
	if !r.Type.isScalar() || r.Foreign {
		return ""
	}
	out := append(make([]byte, 0, 40), "TOOLREG_"...)
	for i := range len(r.Name) { // names of the table are ASCII
		c := r.Name[i]
		switch {
		case c == '.':
			c = '_'
		case c >= 'A' && c <= 'Z':
			out = append(out, '_')
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// DefaultValue returns the default; null where there is none.
func (r *Row) DefaultValue() *document.Node {
	switch def := r.Default; {
	case def == "":
		return &document.Node{}
	case def[0] == '[':
		doc, _ := document.Parse("default.json", []byte(`{"":`+def+`}`))
		return doc.Root.Fields[0].Value
	case def[0] == '"':
		return &document.Node{Kind: document.String, Text: strings.Trim(def, `"`)}
	case def == "true" || def == "false":
		return &document.Node{Kind: document.Bool, Bool: def == "true"}
	default:
		return &document.Node{Kind: document.Number, Text: def}
	}
}

// Index finds settings by name or twin and knows the groups their dots make.
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

// Row returns the setting of a name or twin, nil where there is none.
func (x *Index) Row(name string) *Row { return x.byName[name] }

// IsGroup reports whether dotted names begin with this one.
func (x *Index) IsGroup(name string) bool { return x.groups[name] }

// Names lists what may stand in a file below a group ("" = at the top), sorted.
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

// Keys lists the names and twins of all settings that mean something here,
// sorted.
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
