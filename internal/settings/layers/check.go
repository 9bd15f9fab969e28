package layers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// maxProblems is the maximum number of mistakes, and of unknown keys, that are
// reported per file.
const maxProblems = 100

// reader checks one file against the table of settings.
type reader struct {
	index   *table.Index
	layer   *Layer
	foreign []string
	source  *jsonx.Value // the source that is being checked; nil if none
}

func (r *reader) fail(at jsonx.Pos, hint, format string, args ...any) {
	line, col := at.Place()
	p := document.Problem{
		File:    r.layer.File,
		Line:    line,
		Col:     col,
		Message: document.Visible(fmt.Sprintf(format, args...)),
		Hint:    hint,
	}
	switch {
	case r.source == nil:
		r.layer.Problems = append(r.layer.Problems, p)
	case len(r.layer.Faults[r.source]) < maxProblems:
		if r.layer.Faults == nil {
			r.layer.Faults = Faults{}
		}
		r.layer.Faults[r.source] = append(r.layer.Faults[r.source], p)
	}
}

// unknown warns about a key that is not in the table, and suggests the nearest
// one that is.
func (r *reader) unknown(f jsonx.Member, key, group string, candidates []string) {
	if len(r.layer.Unknown) >= maxProblems {
		return
	}
	d := registry.Diagnostic{Severity: registry.SeverityWarning, Code: "unknown_setting",
		Message: fmt.Sprintf("%s:%d:%d: unknown setting %q", r.layer.File, f.Line, f.Col, key)}
	if r.index.Row(f.Name) != nil && strings.Contains(f.Name, ".") {
		d.Hint = "write it nested, as in " + strings.ReplaceAll(f.Name, ".", ": {") +
			": …" + strings.Repeat("}", strings.Count(f.Name, "."))
	} else if f.Value.Is(jsonx.Object) && (f.Value.Get("command") != nil || f.Value.Get("url") != nil) {
		d.Hint = "an MCP server goes under mcpServers; toolreg servers add-json reads the forms of other programs"
	} else {
		d.Hint = nearKey(f.Name, group, candidates)
	}
	r.layer.Unknown = append(r.layer.Unknown, d)
}

// nearKey suggests the key of a group ("" means the top level) that is nearest to a
// name. If none is near, it lists the keys of a group that has few.
func nearKey(name, group string, candidates []string) string {
	near := registry.Near(name, candidates)
	switch {
	case len(near) > 0:
	case group != "" && 0 < len(candidates) && len(candidates) <= 16:
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
	if r.layer.Scope >= ScopeEnv { // variables and flags are always text
		r.fail(jsonx.Pos{}, "", "%s: expected %s", key, want)
		return
	}
	hint := ""
	switch {
	case want == "a string" && (n.Kind == jsonx.Number || n.Is(jsonx.True) || n.Is(jsonx.False)):
		hint = "put it in quotes"
	case want == "a string" && n.Is(jsonx.Object):
		hint = "text in braces, such as a jq expression, needs quotes"
	case want == "true or false" && n.Kind == jsonx.String:
		hint = "write true or false without quotes"
	}
	r.fail(n.Pos, hint, "%s: expected %s, got %s", key, want, document.TypeName(n))
}

// checkValue reports what is wrong with the value of a setting.
func (r *reader) checkValue(row *table.Row, key string, n *jsonx.Value) {
	if row.Apart && row.Type == table.Command {
		r.source = n
		defer func() { r.source = nil }()
	}
	switch row.Type {
	case table.String:
		r.want(n, key, jsonx.String, "a string")
	case table.Bool:
		if !n.Is(jsonx.True) && !n.Is(jsonx.False) {
			r.wrongType(n, key, "true or false")
		}
	case table.Int:
		_, err := table.ParseInt(n)
		r.report(n, key, err)
	case table.Duration:
		_, err := table.ParseDuration(n)
		r.report(n, key, err)
	case table.Keep:
		_, err := table.ParseKeep(n)
		r.report(n, key, err)
	case table.Size:
		_, err := table.ParseSize(n)
		r.report(n, key, err)
	case table.Choice:
		if r.want(n, key, jsonx.String, "a string") && !slices.Contains(row.Choices, n.Text()) {
			r.fail(n.Pos, "one of "+strings.Join(row.Choices, ", "), "%s: unknown value %q", key, n.Text())
		}
	case table.Network:
		_, _, err := table.ParseNetwork(n)
		r.report(n, key, err)
	case table.Command:
		r.command(key, n)
	case table.Strings:
		r.strings(key, n, "a list of strings")
	default:
		r.checkObject(row, key, n)
	}
	if row.Globs {
		r.checkGlobs(row, key, n)
	}
	if row.Check != nil {
		if problem, hint := row.Check(n); problem != "" {
			r.fail(n.Pos, hint, "%s: %s", key, problem)
		}
	}
}

func (r *reader) checkGlobs(row *table.Row, key string, n *jsonx.Value) {
	for _, v := range append(slices.Clone(n.Items), n) {
		glob := v.Text()
		if row.Parens {
			glob, _, _ = strings.Cut(glob, "(")
		}
		if v.Kind == jsonx.String && !text.IsPattern(glob) {
			r.fail(v.Pos, "", "%s: %q is not a valid glob", key, glob)
		}
	}
}

func (r *reader) checkObject(row *table.Row, key string, n *jsonx.Value) {
	switch row.Type {
	case table.Pairs:
		r.pairs(row, key, n)
	case table.Object:
		r.object(row, key, n)
	case table.Named:
		r.named(row, key, n)
	case table.Objects:
		r.objects(row, key, n)
	case table.OneOrMore:
		if n.Kind == jsonx.Object {
			r.object(row, key, n)
		} else {
			r.objects(row, key, n)
		}
	case table.Addresses:
		r.addresses(row, key, n)
	case table.Scopes:
		r.scopes(key, n)
	case table.Calls:
		r.calls(row, key, n)
	case table.RawNamed:
		if !r.want(n, key, jsonx.Object, "an object") {
			return
		}
		for _, f := range n.Members {
			if r.checkName(row, key, f); row.Entry != nil {
				r.checkValue(row.Entry, key+"."+f.Name, f.Value)
			}
		}
	}
}

// checkName reports what is wrong with a name in an object of names.
func (r *reader) checkName(row *table.Row, key string, f jsonx.Member) {
	if row.CheckName == nil {
		return
	}
	if problem, hint := row.CheckName(f.Name); problem != "" {
		r.fail(f.Pos, hint, "%s: %s", key, problem)
	}
}

func (r *reader) want(n *jsonx.Value, key string, k jsonx.Kind, what string) bool {
	if n.Kind != k {
		r.wrongType(n, key, what)
		return false
	}
	return true
}

func (r *reader) report(n *jsonx.Value, key string, err error) {
	if err != nil {
		r.fail(n.Pos, "", "%s: %s", key, err)
	}
}

func (r *reader) command(key string, n *jsonx.Value) {
	if n.Kind == jsonx.String {
		_, err := table.ParseCommand(n)
		r.report(n, key, err)
		return
	}
	r.strings(key, n, "a string or a list of strings")
	if len(n.Items) > 0 && n.Items[0].Kind == jsonx.String && n.Items[0].Text() == "" && !table.IsBlank(n) {
		r.fail(n.Items[0].Pos, "", "%s: the program's name is empty", key)
	}
}

func (r *reader) strings(key string, n *jsonx.Value, what string) {
	r.items(key, n, what, func(at string, item *jsonx.Value) { r.want(item, at, jsonx.String, "a string") })
}

// items checks that a value is a list, and each of its items.
func (r *reader) items(key string, n *jsonx.Value, what string, check func(at string, item *jsonx.Value)) {
	if r.want(n, key, jsonx.Array, what) {
		for i, item := range n.Items {
			check(fmt.Sprintf("%s[%d]", key, i), item)
		}
	}
}

func (r *reader) pairs(row *table.Row, key string, n *jsonx.Value) {
	if !r.want(n, key, jsonx.Object, "an object of strings") {
		return
	}
	for _, f := range n.Members {
		r.checkName(row, key, f)
		if r.want(f.Value, key+"."+f.Name, jsonx.String, "a string") && row.CheckEntry != nil {
			r.report(f.Value, key, row.CheckEntry(f.Name, f.Value))
		}
	}
}

func (r *reader) object(row *table.Row, key string, n *jsonx.Value) {
	if !r.want(n, key, jsonx.Object, "an object") {
		return
	}
	present := map[string]bool{}
	for _, f := range n.Members {
		i := slices.IndexFunc(row.Fields, func(s table.Row) bool { return s.Name == f.Name })
		switch {
		case i < 0 && row.Strict:
			r.fail(f.Pos, nearKey(f.Name, key, row.FieldNames()), "unknown setting %q", key+"."+f.Name)
			continue
		case i < 0:
			r.unknown(f, key+"."+f.Name, key, row.FieldNames())
			continue
		}
		present[f.Name] = f.Value.Kind != jsonx.Null
		switch field := &row.Fields[i]; {
		case row.Strict && field.Type != table.Raw &&
			(isEmpty(f.Value) || field.Type == table.Command && f.Value.Is(jsonx.Array) && table.IsBlank(f.Value)):
			present[f.Name] = true // reported once
			r.fail(f.Pos, "give it a value or remove it", "%s is empty", key+"."+f.Name)
		case present[f.Name]:
			r.checkValue(&row.Fields[i], key+"."+f.Name, f.Value)
		}
	}
	for _, s := range row.Fields {
		if s.Required && !present[s.Name] {
			r.fail(n.Pos, "", "%s: %s is missing", key, s.Name)
		}
	}
}

// isEmpty reports whether a value is null, or text that is blank.
func isEmpty(n *jsonx.Value) bool {
	return n.Kind == jsonx.Null || n.Kind == jsonx.String && strings.TrimSpace(n.Text()) == ""
}

func (r *reader) named(row *table.Row, key string, n *jsonx.Value) {
	if !r.want(n, key, jsonx.Object, "an object") {
		return
	}
	for _, f := range n.Members {
		if f.Name == "" {
			r.fail(f.Pos, "", "%s: an entry has an empty name", key)
		}
		r.checkName(row, key, f)
		outer := r.source
		if row.Apart {
			r.source = f.Value
		}
		r.object(row, key+"."+f.Name, f.Value)
		if row.CheckEntry != nil && f.Value.Kind == jsonx.Object {
			r.report(f.Value, key+"."+f.Name, row.CheckEntry(f.Name, f.Value))
		}
		r.source = outer
	}
}

func (r *reader) objects(row *table.Row, key string, n *jsonx.Value) {
	r.items(key, n, "a list of objects", func(at string, item *jsonx.Value) { r.object(row, at, item) })
}

func (r *reader) addresses(row *table.Row, key string, n *jsonx.Value) {
	r.items(key, n, "a list of addresses", func(at string, item *jsonx.Value) {
		switch item.Kind {
		case jsonx.Object:
			r.object(row, at, item)
		case jsonx.String:
			r.checkValue(row.Field("url"), at, item)
		default:
			r.wrongType(item, at, "an address, or an object with url and headers")
		}
	})
}

func (r *reader) calls(row *table.Row, key string, n *jsonx.Value) {
	r.items(key, n, "a list of example calls", func(at string, item *jsonx.Value) {
		switch {
		case item.Kind == jsonx.String && !isEmpty(item):
		case item.Kind != jsonx.Object:
			r.wrongType(item, at, "a shell line, or an object with tool and params")
		default:
			r.object(row.Entry, at, item)
		}
	})
}

// scopes checks a list of scopes, or an object of scopes by tool.
func (r *reader) scopes(key string, n *jsonx.Value) {
	scope := func(key string, n *jsonx.Value) {
		if r.want(n, key, jsonx.String, "a scope") && !table.IsScope(n.Text()) {
			r.fail(n.Pos, "such as tools:read", "%s: %s is not a scope", key, text.Quote(n.Text()))
		}
	}
	if n.Kind == jsonx.Object {
		for _, f := range n.Members {
			if f.Name == "" || !text.IsPattern(f.Name) {
				r.fail(f.Pos, "", "%s: %s is not the name or a glob of tools", key, text.Quote(f.Name))
			}
			scope(key+"."+f.Name, f.Value)
		}
		return
	}
	r.items(key, n, "a list of scopes, or an object of scopes by tool", scope)
}
