package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// maxProblems is how many mistakes of a file are reported, and unknown keys.
const maxProblems = 100

// entry is one setting of one file.
type entry struct {
	set    *table.Row
	key    string // as written, dotted
	node   *document.Node
	origin Origin
}

// layer is what one place sets.
type layer struct {
	scope    Scope
	file     string
	real     string         // with links resolved; of --settings files alone
	root     *document.Node // nil where the file could not be parsed
	entries  []entry
	problems []document.Problem
	unknown  []registry.Diagnostic
}

// reader checks one file against the table of settings.
type reader struct {
	index   *table.Index
	layer   *layer
	foreign []string
}

// read parses and checks a settings file. All its mistakes are in the layer.
func read(x *table.Index, scope Scope, file string, data []byte) *layer {
	doc, problems := document.Parse(file, data)
	l := &layer{scope: scope, file: file, problems: problems}
	r := reader{index: x, layer: l}
	if doc != nil {
		l.root = doc.Root
		r.group(doc.Root, "")
	}
	if len(r.foreign) > 0 {
		l.unknown = append(l.unknown, registry.Diagnostic{
			Severity: registry.SeverityInfo, Code: "foreign_setting",
			Message: fmt.Sprintf("%s: settings of another program, without meaning here: %s", file, strings.Join(r.foreign, ", ")),
		})
	}
	document.SortByPlace(l.problems)
	if n := len(l.problems) - maxProblems; n > 0 {
		l.problems = append(l.problems[:maxProblems], document.Problem{File: file, Line: 1, Col: 1, Message: fmt.Sprintf("and %d more mistakes", n)})
	}
	return l
}

func (r *reader) origin(line, col int) Origin {
	return Origin{Scope: r.layer.scope, Name: r.layer.file, Line: line, Col: col}
}

func (r *reader) fail(line, col int, hint, format string, args ...any) {
	r.layer.problems = append(r.layer.problems, document.Problem{
		File: r.layer.file, Line: line, Col: col, Message: document.Visible(fmt.Sprintf(format, args...)), Hint: hint})
}

// group reads the settings below a prefix of the table's dotted names.
func (r *reader) group(n *document.Node, prefix string) {
	for _, f := range n.Fields {
		key := prefix + f.Name
		set := r.index.Row(key)
		switch {
		case strings.Contains(f.Name, "."): // dots in a file are no nesting
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.Names(strings.TrimSuffix(prefix, ".")))
		case f.Value.Kind == document.Null && (set != nil || r.index.IsGroup(key)):
		case set != nil && set.Foreign:
			if key != "$schema" {
				r.foreign = append(r.foreign, key)
			}
		case set != nil:
			r.setting(set, key, f)
		case r.index.IsGroup(key) && f.Value.Kind == document.Object:
			r.group(f.Value, key+".")
		case r.index.IsGroup(key):
			r.wrongType(f.Value, key, "an object")
		default:
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.Names(strings.TrimSuffix(prefix, ".")))
		}
	}
}

func (r *reader) setting(set *table.Row, key string, f document.Field) {
	for _, e := range r.layer.entries {
		if e.set == set {
			r.fail(f.Line, f.Col, "keep one of them", "%s is already set as %s on line %d", key, e.key, e.origin.Line)
			return
		}
	}
	r.check(set, key, f.Value)
	r.layer.entries = append(r.layer.entries, entry{set: set, key: key, node: f.Value, origin: r.origin(f.Line, f.Col)})
}

// unknown warns of a key that is not in the table, with the nearest that is.
func (r *reader) unknown(f document.Field, key, group string, candidates []string) {
	if len(r.layer.unknown) >= maxProblems {
		return
	}
	d := registry.Diagnostic{Severity: registry.SeverityWarning, Code: "unknown_setting",
		Message: fmt.Sprintf("%s:%d:%d: unknown setting %q", r.layer.file, f.Line, f.Col, key)}
	if r.index.Row(f.Name) != nil && strings.Contains(f.Name, ".") {
		d.Hint = "write it nested, as in " + strings.ReplaceAll(f.Name, ".", ": {") + ": …" + strings.Repeat("}", strings.Count(f.Name, "."))
	} else if near := registry.Near(f.Name, candidates); len(near) > 0 {
		if group != "" {
			near[0] = group + "." + near[0]
		}
		d.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	r.layer.unknown = append(r.layer.unknown, d)
}

func (r *reader) wrongType(n *document.Node, key, want string) {
	if r.layer.scope >= ScopeEnv { // there all is text
		r.fail(0, 0, "", "%s: expected %s", key, want)
		return
	}
	hint := ""
	switch {
	case want == "a string" && (n.Kind == document.Number || n.Kind == document.Bool):
		hint = "put it in quotes"
	case want == "true or false" && n.Kind == document.String:
		hint = "write true or false without quotes"
	}
	r.fail(n.Line, n.Col, hint, "%s: expected %s, got %s", key, want, n.Kind)
}

// check reports what is wrong with the value of a setting.
func (r *reader) check(set *table.Row, key string, n *document.Node) {
	switch set.Type {
	case table.String:
		r.want(n, key, document.String, "a string")
	case table.Bool:
		r.want(n, key, document.Bool, "true or false")
	case table.Int:
		_, err := table.ParseInt(n)
		r.report(n, key, err)
	case table.Duration:
		_, err := table.ParseDuration(n)
		r.report(n, key, err)
	case table.Size:
		_, err := table.ParseSize(n)
		r.report(n, key, err)
	case table.Choice:
		r.choice(set, key, n)
	case table.Command:
		r.command(key, n)
	case table.Strings:
		r.strings(key, n, "a list of strings")
	default:
		r.checkObject(set, key, n)
	}
}

func (r *reader) checkObject(set *table.Row, key string, n *document.Node) {
	switch set.Type {
	case table.Pairs:
		r.pairs(set, key, n)
	case table.Object:
		r.object(set, key, n)
	case table.Named:
		r.named(set, key, n)
	case table.Objects:
		r.objects(set, key, n)
	case table.RawNamed:
		if set.Name == headersKey {
			r.checkOriginHeaders(key, n)
			return
		}
		r.want(n, key, document.Object, "an object")
	}
}

func (r *reader) want(n *document.Node, key string, k document.Kind, what string) bool {
	if n.Kind != k {
		r.wrongType(n, key, what)
		return false
	}
	return true
}

func (r *reader) report(n *document.Node, key string, err error) {
	if err != nil {
		r.fail(n.Line, n.Col, "", "%s: %s", key, err)
	}
}

func (r *reader) choice(set *table.Row, key string, n *document.Node) {
	if !r.want(n, key, document.String, "a string") || slices.Contains(set.Choices, n.Text) {
		return
	}
	r.fail(n.Line, n.Col, "one of "+strings.Join(set.Choices, ", "), "%s: unknown value %q", key, n.Text)
}

func (r *reader) command(key string, n *document.Node) {
	if n.Kind == document.String {
		_, err := table.ParseCommand(n)
		r.report(n, key, err)
		return
	}
	r.strings(key, n, "a string or a list of strings")
	if len(n.Items) > 0 && n.Items[0].Kind == document.String && n.Items[0].Text == "" {
		r.fail(n.Items[0].Line, n.Items[0].Col, "", "%s: the program's name is empty", key)
	}
}

func (r *reader) strings(key string, n *document.Node, what string) {
	if !r.want(n, key, document.List, what) {
		return
	}
	for i, item := range n.Items {
		r.want(item, fmt.Sprintf("%s[%d]", key, i), document.String, "a string")
	}
}

func (r *reader) pairs(set *table.Row, key string, n *document.Node) {
	if !r.want(n, key, document.Object, "an object of strings") {
		return
	}
	for _, f := range n.Fields {
		if r.want(f.Value, key+"."+f.Name, document.String, "a string") {
			r.report(f.Value, key, checkPair(set.Name, f.Name, f.Value.Text))
		}
	}
}

func (r *reader) object(set *table.Row, key string, n *document.Node) {
	if !r.want(n, key, document.Object, "an object") {
		return
	}
	present := map[string]bool{}
	for _, f := range n.Fields {
		i := slices.IndexFunc(set.Fields, func(s table.Row) bool { return s.Name == f.Name })
		if i < 0 {
			r.unknown(f, key+"."+f.Name, key, fieldNames(set))
			continue
		}
		if f.Value.Kind != document.Null {
			present[f.Name] = true
			r.check(&set.Fields[i], key+"."+f.Name, f.Value)
		}
	}
	for _, s := range set.Fields {
		if s.Required && !present[s.Name] {
			r.fail(n.Line, n.Col, "", "%s: %s is missing", key, s.Name)
		}
	}
}

func fieldNames(set *table.Row) []string {
	out := make([]string, len(set.Fields))
	for i, s := range set.Fields {
		out[i] = s.Name
	}
	return out
}

func (r *reader) named(set *table.Row, key string, n *document.Node) {
	if !r.want(n, key, document.Object, "an object") {
		return
	}
	for _, f := range n.Fields {
		if f.Name == "" {
			r.fail(f.Line, f.Col, "", "%s: an entry has an empty name", key)
		}
		r.object(set, key+"."+f.Name, f.Value)
		if set.Name == "mcpServers" && f.Value.Kind == document.Object {
			r.report(f.Value, key+"."+f.Name, checkServer(f.Value))
		}
	}
}

func (r *reader) objects(set *table.Row, key string, n *document.Node) {
	if !r.want(n, key, document.List, "a list of objects") {
		return
	}
	for i, item := range n.Items {
		r.object(set, fmt.Sprintf("%s[%d]", key, i), item)
	}
}
