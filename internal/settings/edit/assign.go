package edit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Assign parses the words of a command line as a value of a setting, or of a part of one such as
// mcpServers.NAME.timeout, by the setting's type: lists take any number of
// words, objects one word of JSON. The error is a [*table.UnknownKeyError] or an
// [*document.Error].
func Assign(key string, words []string) (Set, error) {
	x := table.NewIndex()
	row, paths, err := known(x, key)
	if err != nil {
		return Set{}, err
	}
	n, err := valueOf(row, words)
	if err != nil {
		return Set{}, document.NewError([]document.Problem{{File: key, Message: err.Error()}})
	}
	checked := layers.CheckValue(x, row, key, n, layers.Origin{})
	var problems []document.Problem
	for _, d := range checked.Unknown {
		_, message, _ := strings.Cut(d.Message, ": ") // after file:line
		problems = append(problems, document.Problem{File: key, Message: message, Hint: d.Hint})
	}
	for _, p := range checked.Mistakes() {
		problems = append(problems, withoutPlace(p, key))
	}
	return Set{Paths: paths, Value: n.JSON()}, document.NewError(problems)
}

// Paths returns the paths in a file to a setting, or to a part of one: by its name, then by its
// alternative name. The error is a [*table.UnknownKeyError].
func Paths(key string) ([][]string, error) {
	_, paths, err := known(table.NewIndex(), key)
	return paths, err
}

func known(x *table.Index, key string) (*table.Row, [][]string, error) {
	row, paths := assigned(x, key)
	if row == nil || row.Foreign {
		if x.IsGroup(key) {
			return nil, nil, &table.UnknownKeyError{Key: key, Group: x.Names(key)}
		}
		return nil, nil, &table.UnknownKeyError{Key: key, Near: nearKeys(x, key)}
	}
	return row, paths, nil
}

// withoutPlace reports a problem with a value that is not in a file. key, which names the setting
// or a part of it, replaces the file name.
func withoutPlace(p document.Problem, key string) document.Problem {
	p.File, p.Line, p.Col = key, 0, 0
	if part, message, ok := strings.Cut(p.Message, ": "); ok && strings.HasPrefix(part, key) {
		p.File, p.Message = part, message
	}
	return p
}

// assigned returns the row of a key, or nil if there is none, and the possible
// paths to it in a file.
func assigned(x *table.Index, key string) (row *table.Row, paths [][]string) {
	for i := range x.Rows {
		row = &x.Rows[i]
		for _, name := range []string{row.Name, row.Twin} {
			rest, ok := strings.CutPrefix(key, name)
			if !ok || name == "" || rest != "" && rest[0] != '.' {
				continue
			}
			part, names := partOf(row, strings.TrimPrefix(rest, "."))
			if part == nil {
				continue
			}
			for _, name := range []string{row.Name, row.Twin} {
				if name != "" {
					paths = append(paths, slices.Concat(strings.Split(name, "."), names))
				}
			}
			return part, paths
		}
	}
	return nil, nil
}

// partOf finds the part of a setting that the rest of a key names, and its
// path; nil if there is no such part. Names of entries may contain dots.
func partOf(row *table.Row, rest string) (part *table.Row, names []string) {
	switch {
	case rest == "":
		return row, nil
	case row.Type == table.Pairs:
		return &table.Row{Name: rest, Type: table.String}, []string{rest}
	case row.Type == table.RawNamed && (row.Entry != nil || !strings.Contains(rest, ".")):
		// Otherwise it could be a part of an entry.
		return &table.Row{Name: rest, Type: table.Raw}, []string{rest}
	case row.Type == table.Object || row.Type == table.OneOrMore:
		name, below, _ := strings.Cut(rest, ".")
		if i := slices.IndexFunc(row.Fields, func(f table.Row) bool { return f.Name == name }); i >= 0 {
			if part, names = partOf(&row.Fields[i], below); part != nil {
				return part, append([]string{name}, names...)
			}
		}
	case row.Type == table.Named:
		entry := table.Row{Name: row.Name, Type: table.Object, Fields: row.Fields}
		for i, c := range rest {
			if c != '.' {
				continue
			}
			if part, names = partOf(&entry, rest[i+1:]); part != nil && i > 0 {
				return part, append([]string{rest[:i]}, names...)
			}
		}
		if !strings.Contains(rest, ".") {
			return &entry, []string{rest}
		}
	}
	return nil, nil
}

func nearKeys(x *table.Index, key string) []string {
	var near []string
	for i := range x.Rows { // mcpServers.NAME.comand
		rest, ok := strings.CutPrefix(key, x.Rows[i].Name+".")
		if dot := strings.LastIndexByte(rest, '.'); ok && dot > 0 {
			for _, name := range registry.Near(rest[dot+1:], x.Rows[i].FieldNames()) {
				if name = x.Rows[i].Name + "." + rest[:dot+1] + name; name != key {
					// Fields of list elements have no key.
					near = append(near, name)
				}
			}
		}
	}
	return append(near, registry.Near(key, x.Keys())...)
}

// valueOf parses words as a value of a row's type, without checking it.
func valueOf(row *table.Row, words []string) (*jsonx.Value, error) {
	list := row.Type == table.Strings || row.Type == table.Command || row.Type == table.Network
	if list && (len(words) > 1 || row.Type == table.Strings && !strings.HasPrefix(words[0], "[")) {
		return jsonx.NewStrings(words), nil
	}
	if len(words) > 1 {
		return nil, fmt.Errorf("takes one value, got %d", len(words))
	}
	word := words[0]
	switch row.Type {
	case table.String, table.Choice:
		return jsonx.NewString(word), nil
	case table.Command, table.Network:
		if !strings.HasPrefix(word, "[") {
			return jsonx.NewString(word), nil
		}
	case table.Duration, table.Size, table.Keep:
		if strings.Trim(word, "0123456789") != "" {
			return jsonx.NewString(word), nil
		}
	}
	doc, problems := document.Parse("value.json", []byte(`{"":`+word+`}`))
	switch {
	case len(problems) == 0 && len(doc.Root.Members) == 1:
		return doc.Root.Members[0].Value, nil
	case row.Type == table.Raw || row.Type == table.Bool || row.Type == table.Int:
		return jsonx.NewString(word), nil
	case list:
		return nil, fmt.Errorf("%s is not JSON; give the values without brackets, one by one", jsonx.Quote(word))
	}
	return nil, fmt.Errorf("%s is not JSON", jsonx.Quote(word))
}

// Values returns the possible values of a setting, or of a part of one; nil if it
// is neither a choice nor a boolean.
func Values(key string) []string {
	row, _ := assigned(table.NewIndex(), key)
	switch {
	case row == nil:
		return nil
	case row.Type == table.Bool:
		return []string{"true", "false"}
	}
	return row.Choices
}

// valueAt returns the value at a path; nil if there is none.
func valueAt(n *jsonx.Value, path []string) *jsonx.Value {
	for _, name := range path {
		n = n.Get(name)
	}
	return n
}

// entryOf returns the content of a file and the path of the entry of a server or API in it. If the
// error wraps [ErrNoServer], it returns only the content.
func entryOf(file string, data []byte, name string) (root *jsonx.Value, path []string, err error) {
	root, err = parseForEdit(file, data)
	if err != nil {
		return nil, nil, err
	}
	for _, key := range []string{table.ServersKey, table.APIsKey} {
		if path = []string{key, name}; valueAt(root, path) != nil {
			return root, path, nil
		}
	}
	return root, nil, fmt.Errorf("server %q %w in %s", document.Visible(name), ErrNoServer, file)
}

func parseForEdit(file string, data []byte) (*jsonx.Value, error) {
	doc, problems := document.Parse(file, data)
	if err := document.NewError(problems); err != nil {
		return nil, err
	}
	for _, key := range []string{table.ServersKey, table.APIsKey} {
		if s := doc.Root.Get(key); s != nil && s.Kind != jsonx.Object && s.Kind != jsonx.Null {
			line, col := s.Place()
			return nil, document.NewError([]document.Problem{{
				File: file, Line: line, Col: col,
				Message: key + ": expected an object, got " + document.TypeName(s),
			}})
		}
	}
	return doc.Root, nil
}

type placed struct {
	path  []string     // names from the top
	value *jsonx.Value // nil means remove the existing value
	text  []byte       // value in the file's format; nil means use the default format
	first bool         // insert a new member before the others
}

// errOtherWay reports that an editor cannot make a change; another one may.
var errOtherWay = errors.New("this notation is not supported")

// intended returns the intended content of the file, in the right order.
func (c placed) intended(before *jsonx.Value) *jsonx.Value {
	root := before.Clone()
	n := root
	for _, name := range c.path[:len(c.path)-1] {
		next := n.Get(name)
		if next == nil {
			next = jsonx.NewNull()
			n.Members = append(n.Members, jsonx.Member{Name: name, Value: next})
		}
		if next.Kind == jsonx.Null {
			next.Kind = jsonx.Object
		}
		n = next
	}
	name := c.path[len(c.path)-1]
	i := slices.IndexFunc(n.Members, func(f jsonx.Member) bool { return f.Name == name })
	switch {
	case c.value == nil:
		n.Members = slices.Delete(n.Members, i, i+1)
	case i >= 0:
		n.Members[i].Value = c.value
	case c.first:
		n.Members = slices.Insert(n.Members, 0, jsonx.Member{Name: name, Value: c.value})
	default:
		n.Members = append(n.Members, jsonx.Member{Name: name, Value: c.value})
	}
	return root
}

// nested wraps the value in objects for the names of the path from depth on.
func (c placed) nested(depth int) *jsonx.Value {
	n := c.value
	for _, name := range slices.Backward(c.path[depth:]) {
		n = &jsonx.Value{Kind: jsonx.Object, Members: []jsonx.Member{{Name: name, Value: n}}}
	}
	return n
}

func nodeOf(value json.RawMessage) *jsonx.Value {
	doc, _ := document.Parse("value.json", []byte(`{"":`+string(value)+`}`))
	if doc == nil {
		return jsonx.NewNull()
	}
	return doc.Root.Get("")
}
