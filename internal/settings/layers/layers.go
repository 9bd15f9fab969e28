// Package layers reads the settings in one file, variable or flag, and checks them against the
// table of settings. Each value keeps its place. Layers are not merged here, and package settings
// decides whether they apply.
package layers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// Of returns the mistakes in a value as a [*document.Error], or nil if there are none.
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

// Read parses and checks a settings file. The layer records all mistakes in it.
func Read(x *table.Index, scope Scope, file string, data []byte) *Layer {
	doc, problems := document.Parse(file, data)
	return FromDocument(x, scope, file, doc, problems)
}

// FromDocument checks a parsed settings file; doc may be nil.
func FromDocument(x *table.Index, scope Scope, file string,
	doc *document.Document, problems []document.Problem) *Layer {
	l := &Layer{Scope: scope, File: file, Problems: problems}
	r := reader{index: x, layer: l}
	if doc != nil {
		l.Root = doc.Root
		r.group(doc.Root, "")
	}
	if len(r.foreign) > 0 {
		l.Unknown = append(l.Unknown, registry.Diagnostic{
			Severity: registry.SeverityInfo, Code: "foreign_setting",
			Message: fmt.Sprintf("%s: settings of another program, ignored here: %s",
				file, strings.Join(r.foreign, ", ")),
		})
	}
	document.SortByPlace(l.Problems)
	if n := len(l.Problems) - maxProblems; n > 0 {
		l.Problems = append(l.Problems[:maxProblems],
			document.Problem{File: file, Line: 1, Col: 1, Message: fmt.Sprintf("and %d more mistakes", n)})
	}
	return l
}

// CheckValue checks the value of a setting that is not in a file. at has its scope and the name of
// its variable or flag. x may be nil if the value is not an object.
func CheckValue(x *table.Index, row *table.Row, key string, n *jsonx.Value, at Origin) *Layer {
	r := reader{index: x, layer: &Layer{Scope: at.Scope, File: at.Name}}
	r.checkValue(row, key, n)
	return r.layer
}

// CheckFile parses the content of a settings file, whose name determines the
// format. The error is a [*document.Error] with all mistakes; unknown keys are reported
// as diagnostics.
func CheckFile(file string, data []byte) ([]registry.Diagnostic, error) {
	l := Read(table.NewIndex(), ScopeUser, file, data)
	return l.Unknown, document.NewError(l.Mistakes())
}

// CheckEntry returns what is wrong with an entry of mcpServers or openapi, or "" if nothing is.
func CheckEntry(key, name string, entry json.RawMessage) string {
	_, problem := ReadEntry(table.NewIndex(), key, name, entry)
	return problem
}

// ReadEntry reads an entry of mcpServers or openapi. It returns what is wrong with it.
func ReadEntry(x *table.Index, key, name string, entry json.RawMessage) (n *jsonx.Value, problem string) {
	doc, problems := document.Parse("server.json", entry)
	if len(problems) > 0 {
		return nil, "its entry cannot be read"
	}
	named := jsonx.NewObject(jsonx.NewMember(name, doc.Root))
	if mistakes := CheckValue(x, x.Row(key), key, named, Origin{}).Mistakes(); len(mistakes) > 0 {
		return nil, mistakes[0].Message
	}
	return doc.Root, ""
}

// group reads the settings under a prefix of the table's dotted names.
func (r *reader) group(n *jsonx.Value, prefix string) {
	group := strings.TrimSuffix(prefix, ".")
	for _, f := range n.Members {
		key := prefix + f.Name
		row := r.index.Row(key)
		switch {
		case strings.Contains(f.Name, "."): // dots in a file do not mean nesting
			r.unknown(f, key, group, r.index.Names(group))
		case f.Value.Kind == jsonx.Null && (row != nil || r.index.IsGroup(key)):
		case r.index.IsGroup(key) && f.Value.Kind == jsonx.Object:
			r.group(f.Value, key+".")
		case r.index.IsGroup(key) && row != nil && (f.Value.Kind == jsonx.Array || f.Value.Kind == jsonx.Number):
			r.wrongType(f.Value, key, "an object") // in the other program it is text or a boolean
		case row != nil && row.Foreign:
			if key != "$schema" {
				r.foreign = append(r.foreign, key)
			}
		case row != nil:
			r.setting(row, key, f)
		case r.index.IsGroup(key):
			r.wrongType(f.Value, key, "an object")
		case strings.HasPrefix(key, table.Sandbox):
			// This is an error because without the setting the sandbox would confine less.
			r.fail(f.Pos, nearKey(f.Name, group, r.index.Names(group)), "unknown setting %q", key)
		default:
			r.unknown(f, key, group, r.index.Names(group))
		}
	}
}

func (r *reader) setting(row *table.Row, key string, f jsonx.Member) {
	for _, e := range r.layer.Settings {
		if e.Row == row {
			r.fail(f.Pos, "keep one of them", "%s is already set as %s on line %d", key, e.Key, e.Origin.Line)
			return
		}
	}
	r.checkValue(row, key, f.Value)
	origin := Origin{Scope: r.layer.Scope, Name: r.layer.File}
	origin.Line, origin.Col = f.Place()
	r.layer.Settings = append(r.layer.Settings, Setting{Row: row, Key: key, Value: f.Value, Origin: origin})
}
