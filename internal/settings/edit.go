package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// What is wrong with an edit: a file has no server of that name, or has one
// already that adding would replace.
var (
	ErrNoServer     = errors.New("no such server in the file")
	ErrServerExists = errors.New("server is there already")
)

// Edit is one change to the servers of a settings file.
type Edit struct {
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
// The error is an [*Error] for a file that cannot be read, wraps [ErrNoServer]
// or [ErrServerExists], or says why the change cannot be made.
func (e Edit) Apply(file string, data []byte) ([]byte, error) {
	before, err := parseForEdit(file, data)
	if err != nil {
		return nil, err
	}
	if e.Entry != nil {
		if _, problem := checkEntry(newIndex(table()), e.Name, e.Entry); problem != "" {
			return nil, failure([]Problem{{File: "server " + visible(e.Name), Message: problem}})
		}
	}
	have := before.get(serversKey).get(e.Name)
	switch {
	case e.Entry != nil && have != nil:
		return nil, fmt.Errorf("%w: %s has a server %q", ErrServerExists, file, visible(e.Name))
	case e.Entry == nil && have == nil:
		return nil, fmt.Errorf("%w: %s has no server %q", ErrNoServer, file, visible(e.Name))
	case e.Off != nil && have.kind != kindObject:
		return nil, fmt.Errorf("%s: server %q is no object", file, visible(e.Name))
	case e.Off != nil && have.flag("disabled") == *e.Off:
		return data, nil
	}
	want, err := e.wanted(before)
	if err != nil {
		return nil, err
	}
	for _, edit := range editors(file) {
		out, err := edit(e, data, before)
		if err != nil {
			continue
		}
		if after, err := parseForEdit(file, out); err == nil && bytes.Equal(after.withServers().encode(), want.encode()) {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s is written in a way that cannot be edited safely; change it by hand", file)
}

// editor makes a change in the bytes of a file. Its result is checked.
type editor func(e Edit, data []byte, before *node) ([]byte, error)

func editors(file string) []editor {
	if isJSONFile(file) {
		return []editor{Edit.json}
	}
	return []editor{Edit.yaml, Edit.yamlNodes}
}

// errOtherWay tells that an editor cannot make a change.
var errOtherWay = errors.New("another way is needed")

func parseForEdit(file string, data []byte) (*node, error) {
	doc := parse(file, data)
	if err := failure(doc.problems); err != nil {
		return nil, err
	}
	if s := doc.root.get(serversKey); s != nil && s.kind != kindObject && s.kind != kindNull {
		return nil, failure([]Problem{{File: file, Line: s.line, Col: s.col, Message: serversKey + ": expected an object, got " + s.kind.String()}})
	}
	return doc.root, nil
}

// wanted is the file's content after the change, in the right order.
func (e Edit) wanted(before *node) (*node, error) {
	root := before.clone()
	i := slices.IndexFunc(root.fields, func(f field) bool { return f.name == serversKey })
	if i < 0 {
		root.fields = append(root.fields, field{name: serversKey, value: &node{kind: kindObject}})
		i = len(root.fields) - 1
	}
	servers := root.fields[i].value
	at := slices.IndexFunc(servers.fields, func(f field) bool { return f.name == e.Name })
	switch {
	case e.Drop:
		servers.fields = slices.Delete(servers.fields, at, at+1)
	case e.Entry != nil:
		doc := parse("entry.json", e.Entry)
		if doc.root == nil {
			return nil, errors.New("the entry is no JSON object")
		}
		servers.kind = kindObject
		servers.fields = append(servers.fields, field{name: e.Name, value: doc.root})
	case e.Off != nil:
		entry := servers.fields[at].value
		off := &node{kind: kindBool, bool: *e.Off}
		if j := slices.IndexFunc(entry.fields, func(f field) bool { return f.name == "disabled" }); j >= 0 {
			entry.fields[j].value = off
		} else {
			entry.fields = slices.Insert(entry.fields, 0, field{name: "disabled", value: off})
		}
	}
	return root.withServers(), nil
}

// withServers makes an empty object of servers that are null, which is what is
// left in YAML when the last one goes.
func (n *node) withServers() *node {
	if s := n.get(serversKey); s != nil && s.kind == kindNull {
		s.kind = kindObject
	}
	return n
}

// clone copies a value deeply.
func (n *node) clone() *node {
	out := *n
	out.items, out.fields = slices.Clone(n.items), slices.Clone(n.fields)
	for i := range out.items {
		out.items[i] = out.items[i].clone()
	}
	for i := range out.fields {
		out.fields[i].value = out.fields[i].value.clone()
	}
	return &out
}
