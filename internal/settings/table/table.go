// Package table lists every setting: its name and twin, its type, how scopes are
// merged, its default, its documentation, and when a value loosens what is
// allowed.
//
// This table drives reading and merging in package settings, the check for
// unknown keys, the variables, the JSON Schema, the settings reference in the
// documentation, masking, and the questions of package consent. To add a
// setting, add a row, and a field with its name in the tag to settings.Settings.
package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Type is the type of a setting's value.
type Type int

// The types of settings.
const (
	String    Type = iota
	Bool           // true or false
	Int            // a whole number, 0 or more
	Duration       // whole milliseconds, or a string such as "30s"
	Size           // whole bytes, or a string such as "10MiB"
	Keep           // how long a server is kept: true, false or a duration; see [ParseKeep]
	Choice         // one of Row.Choices
	Network        // none, loopback, all, or a list of hosts
	Command        // a string that is split into words, or a list of words
	Strings        // a list of strings
	Pairs          // an object of strings: env, headers
	Object         // an object with Row.Fields
	Named          // an object of names, each with an object of Row.Fields
	Objects        // a list of objects with Row.Fields
	OneOrMore      // an object with Row.Fields, or a list of them
	Addresses      // a list of addresses, or of objects with Row.Fields
	Scopes         // a list of scopes, or an object of scopes by tool
	Calls          // a list of example calls: shell lines, or objects with tool and params
	Raw            // anything; checked by the feature it belongs to
	RawNamed       // an object of names, each with anything
)

// Merge says how a later scope changes the value of an earlier one.
type Merge int

// The rules of merging.
const (
	Replace Merge = iota // the later value replaces the earlier one
	Unite                // the values of all scopes apply: exclusion and deny lists, hooks
	ByName               // a later entry replaces an earlier one of the same name
)

// Names says what the texts of a value, or the keys of an object of names, are names of. A name
// that matches nothing gets a warning.
type Names int

// The kinds of names.
const (
	NoNames    Names = iota
	Tools            // of any source
	Upstream         // tools under their names before overrides, without globs
	Optional         // tools, plugins, group:plugins
	Servers          // of MCP
	Sources          // as in source of a rule
	Plugins          // their ids
	OwnTools         // tools of the MCP server whose entry contains it
	Operations       // operations of the API whose entry contains it
	Others           // names that are known elsewhere, such as clients and their groups
)

// Match says how names of a value are compared. What denies or asks ignores case; what allows or
// changes something does not.
type Match int

// The ways to compare names.
const (
	Globs       Match = iota // names or globs
	FoldedGlobs              // names or globs, ignoring case
	Exact                    // names
)

// Row is one setting, or one field of an object.
type Row struct {
	Name     string // dotted; a field's own name
	Twin     string // the alternative name, dotted
	Type     Type
	Merge    Merge
	Doc      string
	Default  string // as JSON; "" means none
	Choices  []string
	Fields   []Row
	Required bool
	// Strict makes an unknown, null or empty field an error, because without it the object
	// would match or allow more.
	Strict bool
	Globs  bool  // a malformed glob is an error
	Names  Names // whose names the texts are
	Match  Match // how these are compared; in an object with a decision, that tells
	Parens bool  // text in parentheses may follow a name
	Secret bool  // values are masked wherever they are shown
	// Runs says that its paths, or the commands anywhere in it, are run: the trust question shows
	// them.
	Runs    bool
	Loosens func(*jsonx.Value) bool // whether a value allows more than the default; nil means no value does
	Foreign bool                    // a setting of the Gemini CLI, ignored
	// Shapes is set if it adds tools to a registry or leaves some out, other than by connecting
	// servers.
	Shapes bool
	Apart  bool // a mistake in it affects only the source or tool that it describes
	// Check returns what is wrong with a value of the right type, and a hint; "" if nothing is.
	Check func(*jsonx.Value) (problem, hint string)
	// CheckName is Check for a name in an object of names. CheckEntry returns what is wrong with
	// an entry as a whole, whose fields are checked by their own rows.
	CheckName  func(name string) (problem, hint string)
	CheckEntry func(name string, n *jsonx.Value) error
	Entry      *Row // the row of the entries of RawNamed, nil means anything; the row of the objects among Calls

	// Looser reports whether a value allows more than that of the earlier scopes: a
	// project cannot set such a value. nil means a project can set any value.
	Looser func(now, was *jsonx.Value) bool
	// FilesOnly is set if no environment variable carries the value.
	FilesOnly bool
	// Inherits names the setting whose value applies if this one is not set.
	Inherits string
}

// Variable returns the name of the setting's environment variable; "" if it
// cannot have one.
func (r *Row) Variable() string {
	if r.Type > Command || r.Foreign || r.FilesOnly {
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

// DefaultValue returns the default, or null if there is none.
func (r *Row) DefaultValue() *jsonx.Value {
	if r.Default == "" {
		return jsonx.NewNull()
	}
	n, err := jsonx.Parse([]byte(r.Default), jsonx.Options{})
	if err != nil {
		return jsonx.NewNull() // those of the table are valid
	}
	return n
}

// FieldNames lists the names of the row's fields.
func (r *Row) FieldNames() []string {
	out := make([]string, len(r.Fields))
	for i, field := range r.Fields {
		out[i] = field.Name
	}
	return out
}

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
	// Group has the keys of a group of this name, if only a setting is wanted.
	Group []string
}

func (e *UnknownKeyError) Error() string {
	if len(e.Group) > 0 {
		return fmt.Sprintf("%q is a group; name one of its settings: %s", e.Key, strings.Join(e.Group, ", "))
	}
	msg := fmt.Sprintf("unknown setting %q", e.Key)
	if len(e.Near) > 0 {
		msg += fmt.Sprintf("; did you mean %q?", e.Near[0])
	}
	return msg
}
