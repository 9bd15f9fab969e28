// Package edit changes settings files and preserves everything else in them:
// comments, order and notation.
//
// A change is made in the bytes of the file; then the result is read again and
// compared with the intended one. If a notation cannot be edited safely, the result
// is an error instead of a damaged file.
package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Errors that [Change.Apply] wraps: the server to change does not exist in the file,
// or the server to add already does.
var (
	ErrNoServer     = errors.New("does not exist")
	ErrServerExists = errors.New("already exists")
)

// Change is one change to the servers of a settings file.
type Change struct {
	Name  string
	API   bool            // the entry to add is one of openapi instead of mcpServers
	Entry json.RawMessage // the entry to add; nil means none
	Drop  bool            // remove the entry
	Off   *bool           // whether the server is disabled; nil means unchanged
}

// Apply makes the change in the content of a settings file, whose name determines
// the format, and preserves comments, order and notation. data is nil for a
// missing file. The result is read again before it is returned: it differs from
// the old content only by the change.
//
// The error is a [*document.Error] for a file that cannot be read, wraps [ErrNoServer]
// or [ErrServerExists], or explains why the change cannot be made.
func (c Change) Apply(file string, data []byte) ([]byte, error) {
	before, path, err := entryOf(file, data, c.Name)
	if err != nil && (c.Entry == nil || !errors.Is(err, ErrNoServer)) {
		return nil, err
	}
	switch {
	case c.Drop:
		return placed{path: path}.apply(file, data, before)
	case c.Entry != nil:
		return c.add(file, data, before, path)
	}
	have := valueAt(before, path)
	switch {
	case have.Kind != jsonx.Object:
		return nil, fmt.Errorf("%s: server %q is not an object", file, document.Visible(c.Name))
	case have.Get("disabled").Is(jsonx.True) == *c.Off:
		return data, nil
	}
	change := placed{path: append(path, "disabled"), first: true}
	if *c.Off || len(have.Members) == 1 { // an entry that says nothing else stays
		change.value = jsonx.NewBool(*c.Off)
	}
	return change.apply(file, data, before)
}

// add adds the entry. There must be none yet: path is nil.
func (c Change) add(file string, data []byte, before *jsonx.Value, path []string) ([]byte, error) {
	if err := checkEntry(c.API, c.Name, c.Entry); err != nil {
		return nil, err
	}
	if path != nil {
		return nil, fmt.Errorf("server %q %w in %s", document.Visible(c.Name), ErrServerExists, file)
	}
	path = []string{table.ServersKey, c.Name}
	if c.API {
		path[0] = table.APIsKey
	}
	return placed{path: path, value: nodeOf(c.Entry)}.apply(file, data, before)
}

func checkEntry(isAPI bool, name string, entry json.RawMessage) error {
	what, key := "server ", table.ServersKey
	if isAPI {
		what, key = "API ", table.APIsKey
	}
	if problem := layers.CheckEntry(key, name, entry); problem != "" {
		return document.NewError([]document.Problem{{File: what + document.Visible(name), Message: problem}})
	}
	return nil
}

// Set sets a setting, or a part of one, to a value. Each path leads to it by names
// from the top of the file; missing objects are created. The first path that leads
// to an existing value is used, or else the first path.
type Set struct {
	Paths [][]string
	Value json.RawMessage
}

// Apply makes the change like [Change.Apply]. Comments inside a replaced value are
// lost.
func (s Set) Apply(file string, data []byte) ([]byte, error) {
	before, err := parseForEdit(file, data)
	if err != nil {
		return nil, err
	}
	path, value := s.Paths[0], nodeOf(s.Value)
	for _, p := range slices.Backward(s.Paths) {
		if valueAt(before, p) != nil {
			path = p
		}
	}
	if have := valueAt(before, path); have != nil && bytes.Equal(have.JSON(), value.JSON()) {
		return data, nil
	}
	return placed{path: path, value: value}.apply(file, data, before)
}

// Unset removes a setting, or a part of one, and the objects that become empty.
// Each path leads to it by names from the top of the file; paths that lead nowhere
// are ignored.
type Unset struct{ Paths [][]string }

// Apply makes the change like [Change.Apply].
func (u Unset) Apply(file string, data []byte) ([]byte, error) {
	for _, path := range u.Paths {
		before, err := parseForEdit(file, data)
		if err != nil {
			return nil, err
		}
		if valueAt(before, path) == nil {
			continue
		}
		if data, err = (placed{path: path}).apply(file, data, before); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func (c placed) apply(file string, data []byte, before *jsonx.Value) ([]byte, error) {
	if c.value == nil { // remove objects that become empty too
		for len(c.path) > 1 && len(valueAt(before, c.path[:len(c.path)-1]).Members) == 1 {
			c.path = c.path[:len(c.path)-1]
		}
	}
	want := c.intended(before).JSON()
	editors := []editor{placed.yaml, placed.yamlNodes}
	if document.IsJSON(file) {
		editors = []editor{placed.json}
	}
	for _, edit := range editors {
		out, err := edit(c, data)
		if err != nil {
			continue
		}
		if after, err := parseForEdit(file, out); err == nil && bytes.Equal(after.JSON(), want) {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s is written in a way that cannot be edited safely; change it by hand", file)
}

// editor makes a change in the bytes of a file. The caller checks the result.
type editor func(c placed, data []byte) ([]byte, error)
