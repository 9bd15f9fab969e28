package consent

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Loosens lists the settings in a file that allow more than the defaults, one per
// line, with secrets masked.
func Loosens(f *File) []string {
	var out []string
	for _, s := range f.Settings {
		out = append(out, f.loosens(s)...)
	}
	return out
}

func (f *File) loosens(s layers.Setting) []string {
	var out []string
	add := func(n *jsonx.Value, key string, line int) {
		out = append(out, fmt.Sprintf("%s: %s = %s", f.place(line), document.Printable(key), s.Row.Masked(n)))
	}
	switch {
	case s.Row.Name == workspaceRoot:
		add(s.Value, s.Key, s.Origin.Line)
		out[0] += f.outside(s.Value.Text())
	case s.Row.Type == table.Named && s.Row.Loosens != nil:
		for _, entry := range s.Value.Members {
			if s.Row.Loosens(entry.Value) {
				add(entry.Value, s.Key+"."+entry.Name, int(entry.Line))
			}
		}
	case s.Row.Type == table.Named:
		for _, entry := range s.Value.Members {
			for _, member := range entry.Value.Members {
				out = append(out, f.loosens(layers.Setting{Row: s.Row.Field(member.Name), Value: member.Value,
					Key: s.Key + "." + entry.Name + "." + member.Name, Origin: layers.Origin{Line: int(member.Line)}})...)
			}
		}
	case s.Row.Loosens == nil || !s.Row.Loosens(s.Value):
	case s.Row.Type == table.Objects:
		for _, item := range s.Value.Items {
			if s.Row.Loosens(&jsonx.Value{Items: []*jsonx.Value{item}}) {
				add(item, s.Key, int(item.Line))
			}
		}
	default:
		add(s.Value, s.Key, s.Origin.Line)
	}
	return out
}

// workspaceRoot is the setting of the folder that file tools may use.
const workspaceRoot = "workspace.root"

// outside says where a workspace is, if it is outside the project; otherwise it returns "".
func (f *File) outside(folder string) string {
	path, err := f.Expand(folder)
	if err != nil {
		return "" // the variable is shown
	}
	path = expand.From(f.Project, path)
	if path = trust.Real(path); trust.Within(path, trust.Real(f.Project)) {
		return ""
	}
	return fmt.Sprintf(" (outside the project: file tools, edits allowed by auto-edit and the sandbox may then use %s)",
		document.Printable(path))
}

// Expands lists all variables and references in the strings of a file, one per
// line.
func Expands(f *File) []string {
	if f.Root == nil {
		return nil
	}
	var out []string
	f.Root.Walk("", func(key string, n *jsonx.Value) {
		for _, name := range mentions(n.Text()) {
			out = append(out, fmt.Sprintf("%s:%d: %s: %s", f.File, n.Line, document.Printable(key), quoteWord(name)))
		}
	})
	return out
}

// mentions returns all variables and references that expanding a string could
// read, without duplicates, regardless of which variables are set and of quotes in
// the string.
func mentions(s string) []string {
	var all []string
	switch kind, target := secret.Reference(s); kind {
	case "env":
		return []string{target}
	case "file", "cmd":
		all = append(all, s)
		s = target
	}
	all = append(all, expand.Names(s)...)
	if words, err := process.Split(s); err == nil { // quotes can hide a name, as in $\A
		for _, word := range words {
			all = append(all, expand.Names(word)...)
		}
	}
	var out []string
	for _, name := range all {
		out = text.AppendNew(out, name)
	}
	return out
}
