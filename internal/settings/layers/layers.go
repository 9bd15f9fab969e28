// Package layers reads what one file, variable or flag sets, and checks it against
// the table of settings. Each value keeps the place where it was set. What is read
// here is not merged yet, and nothing of it applies: package settings decides that.
package layers

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Scope is where a value came from, in order of precedence.
type Scope int

// The scopes, lowest precedence first.
const (
	ScopeDefault Scope = iota
	ScopeSystem
	ScopeUser
	ScopeProject
	ScopeFile // a --settings file
	ScopeEnv
	ScopeFlag
)

// String returns the name of the scope.
func (s Scope) String() string {
	return [...]string{"default", "system", "user", "project", "file", "environment", "flag"}[s]
}

// MarshalText returns the name of the scope.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Origin is where a value was set. The zero value is the built-in default.
type Origin struct {
	Scope Scope
	Name  string // the file's path, the variable's or the flag's name
	Line  int    // from 1; 0 if there is no file
	Col   int    // from 1; 0 if there is no file
}

// String returns file:line, the variable's name, the flag or "default".
func (o Origin) String() string {
	switch {
	case o.Scope == ScopeDefault:
		return "default"
	case o.Line > 0:
		return o.Name + ":" + strconv.Itoa(o.Line)
	}
	return o.Name
}

// Problem returns a mistake at this place.
func (o Origin) Problem(message, hint string) document.Problem {
	return document.Problem{File: cmp.Or(o.Name, o.String()), Line: o.Line, Col: o.Col, Message: message, Hint: hint}
}

// Setting is one setting of one file.
type Setting struct {
	Row    *table.Row
	Key    string // as written, dotted
	Value  *jsonx.Value
	Origin Origin
	Layer  int // index of its layer; later ones replace earlier ones
}

// Layer is what one file, variable or flag sets.
type Layer struct {
	Scope    Scope
	File     string
	Root     *jsonx.Value // nil if the file could not be parsed
	Settings []Setting
	Problems []document.Problem
	Faults   Faults
	Unknown  []registry.Diagnostic
}

// Faults are the mistakes in the value that describes one source, an entry of
// mcpServers or a command. They affect only that source.
type Faults map[*jsonx.Value][]document.Problem

// Of returns the mistakes in a value as an [*document.Error], or nil if there are none.
func (f Faults) Of(n *jsonx.Value) error { return document.NewError(document.SortProblems(f[n])) }

// Mistakes returns all mistakes in a layer, in order of position.
func (l *Layer) Mistakes() []document.Problem {
	all := slices.Clone(l.Problems)
	for _, problems := range l.Faults {
		all = append(all, problems...)
	}
	document.SortByPlace(all)
	return all
}

// IsBlank reports whether a file sets nothing except $schema, for example because
// everything in it is commented out. It is false for nil.
func (l *Layer) IsBlank() bool {
	return l != nil && l.Root != nil && len(l.Problems) == 0 &&
		!slices.ContainsFunc(l.Root.Members, func(f jsonx.Member) bool { return f.Name != "$schema" })
}

// Entry is one element of a list setting with its own origin.
type Entry struct {
	Value  string
	Origin Origin
}

// List is a list setting. Set distinguishes an absent list from an empty one,
// which differ for coreTools and includeTools.
type List struct {
	Set     bool
	Entries []Entry
}

// Add adds the entries whose values the list does not have.
func (l *List) Add(entries []Entry) {
	for _, e := range entries {
		if !slices.ContainsFunc(l.Entries, func(have Entry) bool { return have.Value == e.Value }) {
			l.Entries = append(l.Entries, e)
		}
	}
}

// Values returns the values in order.
func (l List) Values() []string {
	out := make([]string, len(l.Entries))
	for i, e := range l.Entries {
		out[i] = e.Value
	}
	return out
}

// Sourced returns the entries with their origins.
func (l List) Sourced() []registry.Entry {
	out := make([]registry.Entry, len(l.Entries))
	for i, e := range l.Entries {
		out[i] = registry.Entry{Value: e.Value, Setting: e.Origin.String(), OfProject: e.Origin.Scope == ScopeProject}
	}
	return out
}

// ToList returns the texts of a checked list in the order of the file; in names the file.
func ToList(n *jsonx.Value, in Origin) List {
	if !n.Is(jsonx.Array) {
		return List{}
	}
	l := List{Set: true, Entries: make([]Entry, 0, len(n.Items))}
	for _, item := range n.Items {
		in.Line, in.Col = item.Place()
		l.Entries = append(l.Entries, Entry{Value: item.Text(), Origin: in})
	}
	return l
}
