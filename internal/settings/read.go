package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// maxProblems is how many mistakes of a file are told, and unknown keys.
const maxProblems = 100

// entry is one setting of one file.
type entry struct {
	set    *setting
	key    string // as written, dotted
	node   *node
	origin Origin
}

// layer is what one place sets.
type layer struct {
	scope    Scope
	file     string
	real     string // with links resolved; of --settings files alone
	root     *node  // nil where the file could not be parsed
	entries  []entry
	problems []Problem
	unknown  []registry.Diagnostic
}

// reader checks one file against the table of settings.
type reader struct {
	index   *index
	layer   *layer
	foreign []string
}

// read parses and checks a settings file. All its mistakes are in the layer.
func read(x *index, scope Scope, file string, data []byte) *layer {
	doc := parse(file, data)
	l := &layer{scope: scope, file: file, root: doc.root, problems: doc.problems}
	r := reader{index: x, layer: l}
	if doc.root != nil {
		r.group(doc.root, "")
	}
	if len(r.foreign) > 0 {
		l.unknown = append(l.unknown, registry.Diagnostic{
			Severity: registry.SeverityInfo, Code: "foreign_setting",
			Message: fmt.Sprintf("%s: settings of another program, without meaning here: %s", file, strings.Join(r.foreign, ", ")),
		})
	}
	sortProblems(l.problems)
	if n := len(l.problems) - maxProblems; n > 0 {
		l.problems = append(l.problems[:maxProblems], Problem{File: file, Line: 1, Col: 1, Message: fmt.Sprintf("and %d more mistakes", n)})
	}
	return l
}

func (r *reader) origin(line, col int) Origin {
	return Origin{Scope: r.layer.scope, Name: r.layer.file, Line: line, Col: col}
}

func (r *reader) fail(line, col int, hint, format string, args ...any) {
	r.layer.problems = append(r.layer.problems, Problem{
		File: r.layer.file, Line: line, Col: col, Message: visible(fmt.Sprintf(format, args...)), Hint: hint})
}

// group reads the settings below a prefix of the table's dotted names.
func (r *reader) group(n *node, prefix string) {
	for _, f := range n.fields {
		key := prefix + f.name
		set := r.index.byName[key]
		switch {
		case strings.Contains(f.name, "."): // dots in a file are no nesting
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.names(strings.TrimSuffix(prefix, ".")))
		case f.value.kind == kindNull && (set != nil || r.index.groups[key]):
		case set != nil && set.foreign:
			if key != "$schema" {
				r.foreign = append(r.foreign, key)
			}
		case set != nil:
			r.setting(set, key, f)
		case r.index.groups[key] && f.value.kind == kindObject:
			r.group(f.value, key+".")
		case r.index.groups[key]:
			r.wrongType(f.value, key, "an object")
		default:
			r.unknown(f, key, strings.TrimSuffix(prefix, "."), r.index.names(strings.TrimSuffix(prefix, ".")))
		}
	}
}

func (r *reader) setting(set *setting, key string, f field) {
	for _, e := range r.layer.entries {
		if e.set == set {
			r.fail(f.line, f.col, "keep one of them", "%s is already set as %s on line %d", key, e.key, e.origin.Line)
			return
		}
	}
	r.check(set, key, f.value)
	r.layer.entries = append(r.layer.entries, entry{set: set, key: key, node: f.value, origin: r.origin(f.line, f.col)})
}

// unknown warns of a key that is not in the table, with the nearest that is.
func (r *reader) unknown(f field, key, group string, candidates []string) {
	if len(r.layer.unknown) >= maxProblems {
		return
	}
	d := registry.Diagnostic{Severity: registry.SeverityWarning, Code: "unknown_setting",
		Message: fmt.Sprintf("%s:%d:%d: unknown setting %q", r.layer.file, f.line, f.col, key)}
	if r.index.byName[f.name] != nil && strings.Contains(f.name, ".") {
		d.Hint = "write it nested, as in " + strings.ReplaceAll(f.name, ".", ": {") + ": …" + strings.Repeat("}", strings.Count(f.name, "."))
	} else if near := registry.Near(f.name, sorted(candidates)); len(near) > 0 {
		if group != "" {
			near[0] = group + "." + near[0]
		}
		d.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	r.layer.unknown = append(r.layer.unknown, d)
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *reader) wrongType(n *node, key, want string) {
	if r.layer.scope >= ScopeEnv { // there all is text
		r.fail(0, 0, "", "%s: expected %s", key, want)
		return
	}
	hint := ""
	switch {
	case want == "a string" && (n.kind == kindNumber || n.kind == kindBool):
		hint = "put it in quotes"
	case want == "true or false" && n.kind == kindString:
		hint = "write true or false without quotes"
	}
	r.fail(n.line, n.col, hint, "%s: expected %s, got %s", key, want, n.kind)
}

// check reports what is wrong with the value of a setting.
func (r *reader) check(set *setting, key string, n *node) {
	switch set.typ {
	case typeString:
		r.want(n, key, kindString, "a string")
	case typeBool:
		r.want(n, key, kindBool, "true or false")
	case typeInt:
		_, err := parseInt(n)
		r.report(n, key, err)
	case typeDuration:
		_, err := parseDuration(n)
		r.report(n, key, err)
	case typeSize:
		_, err := parseSize(n)
		r.report(n, key, err)
	case typeChoice:
		r.choice(set, key, n)
	case typeCommand:
		r.command(key, n)
	case typeStrings:
		r.strings(key, n, "a list of strings")
	default:
		r.checkObject(set, key, n)
	}
}

func (r *reader) checkObject(set *setting, key string, n *node) {
	switch set.typ {
	case typePairs:
		r.pairs(set, key, n)
	case typeObject:
		r.object(set, key, n)
	case typeNamed:
		r.named(set, key, n)
	case typeObjects:
		r.objects(set, key, n)
	case typeRawNamed:
		if set.name == headersKey {
			r.checkOriginHeaders(key, n)
			return
		}
		r.want(n, key, kindObject, "an object")
	}
}

func (r *reader) want(n *node, key string, k kind, what string) bool {
	if n.kind != k {
		r.wrongType(n, key, what)
		return false
	}
	return true
}

func (r *reader) report(n *node, key string, err error) {
	if err != nil {
		r.fail(n.line, n.col, "", "%s: %s", key, err)
	}
}

func (r *reader) choice(set *setting, key string, n *node) {
	if !r.want(n, key, kindString, "a string") || slices.Contains(set.choices, n.text) {
		return
	}
	r.fail(n.line, n.col, "one of "+strings.Join(set.choices, ", "), "%s: unknown value %q", key, n.text)
}

func (r *reader) command(key string, n *node) {
	if n.kind == kindString {
		if _, err := splitCommand(n.text); err != nil {
			r.fail(n.line, n.col, "", "%s: %s", key, err)
		}
		return
	}
	r.strings(key, n, "a string or a list of strings")
	if len(n.items) > 0 && n.items[0].kind == kindString && n.items[0].text == "" {
		r.fail(n.items[0].line, n.items[0].col, "", "%s: the program's name is empty", key)
	}
}

// splitCommand splits a command line; an empty one switches the command off.
func splitCommand(line string) ([]string, error) {
	if strings.TrimSpace(line) == "" {
		return nil, nil
	}
	return process.Split(line)
}

func (r *reader) strings(key string, n *node, what string) {
	if !r.want(n, key, kindList, what) {
		return
	}
	for i, item := range n.items {
		r.want(item, fmt.Sprintf("%s[%d]", key, i), kindString, "a string")
	}
}

func (r *reader) pairs(set *setting, key string, n *node) {
	if !r.want(n, key, kindObject, "an object of strings") {
		return
	}
	for _, f := range n.fields {
		if r.want(f.value, key+"."+f.name, kindString, "a string") {
			r.report(f.value, key, checkPair(set.name, f.name, f.value.text))
		}
	}
}

func (r *reader) object(set *setting, key string, n *node) {
	if !r.want(n, key, kindObject, "an object") {
		return
	}
	present := map[string]bool{}
	for _, f := range n.fields {
		i := slices.IndexFunc(set.fields, func(s setting) bool { return s.name == f.name })
		if i < 0 {
			r.unknown(f, key+"."+f.name, key, fieldNames(set))
			continue
		}
		if f.value.kind != kindNull {
			present[f.name] = true
			r.check(&set.fields[i], key+"."+f.name, f.value)
		}
	}
	for _, s := range set.fields {
		if s.required && !present[s.name] {
			r.fail(n.line, n.col, "", "%s: %s is missing", key, s.name)
		}
	}
}

func fieldNames(set *setting) []string {
	out := make([]string, len(set.fields))
	for i, s := range set.fields {
		out[i] = s.name
	}
	return out
}

func (r *reader) named(set *setting, key string, n *node) {
	if !r.want(n, key, kindObject, "an object") {
		return
	}
	for _, f := range n.fields {
		if f.name == "" {
			r.fail(f.line, f.col, "", "%s: an entry has an empty name", key)
		}
		r.object(set, key+"."+f.name, f.value)
		if set.name == "mcpServers" && f.value.kind == kindObject {
			r.report(f.value, key+"."+f.name, checkServer(f.value))
		}
	}
}

func (r *reader) objects(set *setting, key string, n *node) {
	if !r.want(n, key, kindList, "a list of objects") {
		return
	}
	for i, item := range n.items {
		r.object(set, fmt.Sprintf("%s[%d]", key, i), item)
	}
}
