package edit

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// tree is the content of a file.
type tree struct{ *jsonx.Value }

// at returns the value at a path; nil if there is none.
func (t tree) at(path []string) *jsonx.Value {
	n := t.Value
	for _, name := range path {
		n = n.Get(name)
	}
	return n
}

// pathOf returns the path of a server's or an API's entry; nil if there is none.
func (t tree) pathOf(name string) []string {
	for _, key := range []string{table.ServersKey, table.APIsKey} {
		if path := []string{key, name}; t.at(path) != nil {
			return path
		}
	}
	return nil
}

func parseForEdit(file string, data []byte) (tree, error) {
	doc, problems := document.Parse(file, data)
	if err := document.NewError(problems); err != nil {
		return tree{}, err
	}
	for _, key := range []string{table.ServersKey, table.APIsKey} {
		if s := doc.Root.Get(key); s != nil && s.Kind != jsonx.Object && s.Kind != jsonx.Null {
			line, col := s.Place()
			return tree{}, document.NewError([]document.Problem{{
				File: file, Line: line, Col: col,
				Message: key + ": expected an object, got " + document.TypeName(s),
			}})
		}
	}
	return tree{doc.Root}, nil
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
func (c placed) intended(before tree) *jsonx.Value {
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

// nodeOf returns the node of a JSON value.
func nodeOf(value json.RawMessage) *jsonx.Value {
	doc, _ := document.Parse("value.json", []byte(`{"":`+string(value)+`}`))
	if doc == nil {
		return jsonx.NewNull()
	}
	return doc.Root.Get("")
}
