package layers

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

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

// CheckValue checks the value of a setting that is in no file; at tells its scope and the name
// of what sets it. x may be nil if the value is no object.
func CheckValue(x *table.Index, row *table.Row, key string, n *jsonx.Value, at Origin) *Layer {
	r := reader{index: x, layer: &Layer{Scope: at.Scope, File: at.Name}}
	r.checkValue(row, key, n)
	return r.layer
}

// CheckFile parses the content of a settings file, whose name determines the
// format. The error is an [*document.Error] with all mistakes; unknown keys are reported
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
		case strings.HasPrefix(key, table.Sandbox):
			// This is an error because without the setting the sandbox would confine less.
			group := strings.TrimSuffix(prefix, ".")
			r.fail(f.Pos, nearKey(f.Name, group, r.index.Names(group)), "unknown setting %q", key)
		default:
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.Names(strings.TrimSuffix(prefix, ".")))
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
	r.layer.Settings = append(r.layer.Settings, Setting{Row: row, Key: key, Value: f.Value, Origin: r.origin(f.Pos)})
}
