// Package edit changes settings files and leaves the rest of them as it is:
// comments, order and the way things are written stay.
//
// A change is made in the bytes of the file; then the result is read again and
// compared with what was meant. A way of writing that cannot be edited safely is
// an error, not a damaged file.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// What is wrong with an edit: a file has no server of that name, or has one
// already that adding would replace.
var (
	ErrNoServer     = errors.New("no such server in the file")
	ErrServerExists = errors.New("server is there already")
)

// serversKey is the setting whose entries are edited.
const serversKey = "mcpServers"

// Change is one change to the servers of a settings file.
type Change struct {
	Name  string
	Entry json.RawMessage // the entry to add; nil = none is added
	Drop  bool            // the entry is removed
	Off   *bool           // what disabled is to be
}

// Apply makes the change in the bytes of a settings file, whose name tells the
// format, and touches nothing else: comments, order and the way things are
// written stay. data is nil for a file that is not there. The result is read
// again before it is returned: it holds what was there and the change alone.
//
// The error is an [*settings.Error] for a file that cannot be read, wraps [ErrNoServer]
// or [ErrServerExists], or says why the change cannot be made.
func (c Change) Apply(file string, data []byte) ([]byte, error) {
	before, err := parseForEdit(file, data)
	if err != nil {
		return nil, err
	}
	if c.Entry != nil {
		if problem := settings.CheckServer(c.Name, c.Entry); problem != "" {
			return nil, settings.NewError([]document.Problem{{File: "server " + document.Visible(c.Name), Message: problem}})
		}
	}
	have := before.Get(serversKey).Get(c.Name)
	switch {
	case c.Entry != nil && have != nil:
		return nil, fmt.Errorf("%w: %s has a server %q", ErrServerExists, file, document.Visible(c.Name))
	case c.Entry == nil && have == nil:
		return nil, fmt.Errorf("%w: %s has no server %q", ErrNoServer, file, document.Visible(c.Name))
	case c.Off != nil && have.Kind != document.Object:
		return nil, fmt.Errorf("%s: server %q is no object", file, document.Visible(c.Name))
	case c.Off != nil && have.Get("disabled").True() == *c.Off:
		return data, nil
	}
	want := c.wanted(before).Encode()
	for _, edit := range editors(file) {
		out, err := edit(c, data)
		if err != nil {
			continue
		}
		if after, err := parseForEdit(file, out); err == nil && bytes.Equal(withServers(after).Encode(), want) {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s is written in a way that cannot be edited safely; change it by hand", file)
}

// editor makes a change in the bytes of a file. Its result is checked.
type editor func(c Change, data []byte) ([]byte, error)

func editors(file string) []editor {
	if document.IsJSON(file) {
		return []editor{Change.json}
	}
	return []editor{Change.yaml, Change.yamlNodes}
}

// errOtherWay tells that an editor cannot make a change.
var errOtherWay = errors.New("another way is needed")

func parseForEdit(file string, data []byte) (*document.Node, error) {
	doc, problems := document.Parse(file, data)
	if err := settings.NewError(problems); err != nil {
		return nil, err
	}
	if s := doc.Root.Get(serversKey); s != nil && s.Kind != document.Object && s.Kind != document.Null {
		return nil, settings.NewError([]document.Problem{{File: file, Line: s.Line, Col: s.Col, Message: serversKey + ": expected an object, got " + s.Kind.String()}})
	}
	return doc.Root, nil
}

// wanted is the file's content after the change, in the right order.
func (c Change) wanted(before *document.Node) *document.Node {
	root := before.Clone()
	i := slices.IndexFunc(root.Fields, func(f document.Field) bool { return f.Name == serversKey })
	if i < 0 {
		root.Fields = append(root.Fields, document.Field{Name: serversKey, Value: &document.Node{Kind: document.Object}})
		i = len(root.Fields) - 1
	}
	servers := root.Fields[i].Value
	at := slices.IndexFunc(servers.Fields, func(f document.Field) bool { return f.Name == c.Name })
	switch {
	case c.Drop:
		servers.Fields = slices.Delete(servers.Fields, at, at+1)
		if len(servers.Fields) == 0 {
			root.Fields = slices.Delete(root.Fields, i, i+1)
		}
	case c.Entry != nil:
		servers.Kind = document.Object
		servers.Fields = append(servers.Fields, document.Field{Name: c.Name, Value: c.entry()})
	case c.Off != nil:
		entry := servers.Fields[at].Value
		off := &document.Node{Kind: document.Bool, Bool: *c.Off}
		if j := slices.IndexFunc(entry.Fields, func(f document.Field) bool { return f.Name == "disabled" }); j >= 0 {
			entry.Fields[j].Value = off
		} else {
			entry.Fields = slices.Insert(entry.Fields, 0, document.Field{Name: "disabled", Value: off})
		}
	}
	return withServers(root)
}

// entry is the entry to add, which was checked.
func (c Change) entry() *document.Node {
	doc, _ := document.Parse("entry.json", c.Entry)
	return doc.Root
}

// withServers makes an empty object of servers that are null.
func withServers(n *document.Node) *document.Node {
	if s := n.Get(serversKey); s != nil && s.Kind == document.Null {
		s.Kind = document.Object
	}
	return n
}
