package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// maxProblems is the maximum number of mistakes, and of unknown keys, that are
// reported per file.
const maxProblems = 100

// entry is one setting of one file.
type entry struct {
	row    *table.Row
	key    string // as written, dotted
	node   *jsonx.Value
	origin Origin
	layer  int // index of its layer; later ones replace earlier ones
}

// layer holds what one scope sets.
type layer struct {
	scope    Scope
	file     string
	real     string       // with links resolved; only for --settings files
	root     *jsonx.Value // nil if the file could not be parsed
	entries  []entry
	problems []document.Problem
	faults   faults
	unknown  []registry.Diagnostic
	servers  int              // number of servers in a file of another program
	switched []ImportedServer // of another program: entries that only switch servers on or off
}

// faults are the mistakes in the value that describes one source, an entry of
// mcpServers or a command. They affect only that source.
type faults map[*jsonx.Value][]document.Problem

// of returns the mistakes in a value as an [*document.Error], or nil if there are none.
func (f faults) of(n *jsonx.Value) error { return document.NewError(document.SortProblems(f[n])) }

// mistakes returns all mistakes in a layer, in order of position.
func (l *layer) mistakes() []document.Problem {
	all := slices.Clone(l.problems)
	for _, problems := range l.faults {
		all = append(all, problems...)
	}
	document.SortByPlace(all)
	return all
}

// isBlank reports whether a file sets nothing except $schema, for example because
// everything in it is commented out. It is false for nil.
func (l *layer) isBlank() bool {
	return l != nil && l.root != nil && len(l.problems) == 0 &&
		!slices.ContainsFunc(l.root.Members, func(f jsonx.Member) bool { return f.Name != "$schema" })
}

// reader checks one file against the table of settings.
type reader struct {
	index   *table.Index
	layer   *layer
	foreign []string
	source  *jsonx.Value // the source that is being checked; nil if none
}

// read parses and checks a settings file. The layer records all mistakes in it.
func read(x *table.Index, scope Scope, file string, data []byte) *layer {
	doc, problems := document.Parse(file, data)
	return check(x, scope, file, doc, problems)
}

// check checks a parsed settings file; doc may be nil.
func check(x *table.Index, scope Scope, file string, doc *document.Document, problems []document.Problem) *layer {
	l := &layer{scope: scope, file: file, problems: problems}
	r := reader{index: x, layer: l}
	if doc != nil {
		l.root = doc.Root
		r.group(doc.Root, "")
	}
	if len(r.foreign) > 0 {
		l.unknown = append(l.unknown, registry.Diagnostic{
			Severity: registry.SeverityInfo, Code: "foreign_setting",
			Message: fmt.Sprintf("%s: settings of another program, ignored here: %s", file, strings.Join(r.foreign, ", ")),
		})
	}
	document.SortByPlace(l.problems)
	if n := len(l.problems) - maxProblems; n > 0 {
		l.problems = append(l.problems[:maxProblems], document.Problem{File: file, Line: 1, Col: 1, Message: fmt.Sprintf("and %d more mistakes", n)})
	}
	return l
}

func (r *reader) origin(at jsonx.Pos) Origin {
	line, col := at.Place()
	return Origin{Scope: r.layer.scope, Name: r.layer.file, Line: line, Col: col}
}

func (r *reader) fail(at jsonx.Pos, hint, format string, args ...any) {
	line, col := at.Place()
	p := document.Problem{File: r.layer.file, Line: line, Col: col, Message: document.Visible(fmt.Sprintf(format, args...)), Hint: hint}
	switch {
	case r.source == nil:
		r.layer.problems = append(r.layer.problems, p)
	case len(r.layer.faults[r.source]) < maxProblems:
		if r.layer.faults == nil {
			r.layer.faults = faults{}
		}
		r.layer.faults[r.source] = append(r.layer.faults[r.source], p)
	}
}

// group reads the settings under a prefix of the table's dotted names.
func (r *reader) group(n *jsonx.Value, prefix string) {
	for _, f := range n.Members {
		key := prefix + f.Name
		row := r.index.Row(key)
		switch {
		case strings.Contains(f.Name, "."): // dots in a file do not mean nesting
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.Names(strings.TrimSuffix(prefix, ".")))
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
		case strings.HasPrefix(key, table.Sandbox): // an error, because without the setting the sandbox would confine less
			group := strings.TrimSuffix(prefix, ".")
			r.fail(f.Pos, nearKey(f.Name, group, r.index.Names(group)), "unknown setting %q", key)
		default:
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.Names(strings.TrimSuffix(prefix, ".")))
		}
	}
}

func (r *reader) setting(row *table.Row, key string, f jsonx.Member) {
	for _, e := range r.layer.entries {
		if e.row == row {
			r.fail(f.Pos, "keep one of them", "%s is already set as %s on line %d", key, e.key, e.origin.Line)
			return
		}
	}
	r.check(row, key, f.Value)
	r.layer.entries = append(r.layer.entries, entry{row: row, key: key, node: f.Value, origin: r.origin(f.Pos)})
}

// unknown warns about a key that is not in the table, and suggests the nearest
// one that is.
func (r *reader) unknown(f jsonx.Member, key, group string, candidates []string) {
	if len(r.layer.unknown) >= maxProblems {
		return
	}
	d := registry.Diagnostic{Severity: registry.SeverityWarning, Code: "unknown_setting",
		Message: fmt.Sprintf("%s:%d:%d: unknown setting %q", r.layer.file, f.Line, f.Col, key)}
	if r.index.Row(f.Name) != nil && strings.Contains(f.Name, ".") {
		d.Hint = "write it nested, as in " + strings.ReplaceAll(f.Name, ".", ": {") + ": …" + strings.Repeat("}", strings.Count(f.Name, "."))
	} else {
		d.Hint = nearKey(f.Name, group, candidates)
	}
	r.layer.unknown = append(r.layer.unknown, d)
}

// nearKey suggests the key of a group ("" means the top level) that is nearest to a
// name. If none is near, it lists the keys of a group that has few.
func nearKey(name, group string, candidates []string) string {
	near := registry.Near(name, candidates)
	switch {
	case len(near) > 0:
	case group != "" && 0 < len(candidates) && len(candidates) <= 12:
		return fmt.Sprintf("%s has the keys %s", group, strings.Join(candidates, ", "))
	default:
		return ""
	}
	if group != "" {
		near[0] = group + "." + near[0]
	}
	return fmt.Sprintf("did you mean %q?", near[0])
}

func (r *reader) wrongType(n *jsonx.Value, key, want string) {
	if r.layer.scope >= ScopeEnv { // variables and flags are always text
		r.fail(jsonx.Pos{}, "", "%s: expected %s", key, want)
		return
	}
	hint := ""
	switch {
	case want == "a string" && (n.Kind == jsonx.Number || n.Is(jsonx.True) || n.Is(jsonx.False)):
		hint = "put it in quotes"
	case want == "true or false" && n.Kind == jsonx.String:
		hint = "write true or false without quotes"
	}
	r.fail(n.Pos, hint, "%s: expected %s, got %s", key, want, document.TypeName(n))
}
