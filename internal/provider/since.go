package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// Changes are the differences between two outputs of a format.
type Changes struct {
	Added   []json.RawMessage `json:"added"`   // declarations
	Removed []string          `json:"removed"` // declared names
	Changed []json.RawMessage `json:"changed"` // declarations as they are now
}

// Since compares an output with an earlier one of the same format, as it was printed or as the API
// received it: with or without the object or list that --request adds.
func (f Format) Since(before []byte, now Output) (Changes, error) {
	c := Changes{Added: []json.RawMessage{}, Removed: []string{}, Changed: []json.RawMessage{}}
	if f.Text {
		return c, fmt.Errorf("declarations of format %s cannot be compared, because they are text", f.Name)
	}
	old, err := declared(before)
	if err != nil {
		return c, err
	}
	current, err := declared(now.Data)
	if err != nil {
		return c, err
	}
	if len(old) > 0 && len(current) > 0 && old[0].shape() != current[0].shape() {
		return c, fmt.Errorf("its declarations are not of format %s", f.Name)
	}
	were := map[string]json.RawMessage{}
	for _, d := range old {
		were[d.name] = d.data
	}
	for _, d := range current {
		was, known := were[d.name]
		switch {
		case !known:
			c.Added = append(c.Added, d.data)
		case !bytes.Equal(was, d.data):
			c.Changed = append(c.Changed, d.data)
		}
		delete(were, d.name)
	}
	for _, d := range old {
		if were[d.name] != nil {
			c.Removed = append(c.Removed, d.name)
			delete(were, d.name)
		}
	}
	return c, nil
}

// Empty reports whether nothing differs.
func (c Changes) Empty() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// AnthropicMessage returns the changes as a message of role system to append to the conversation:
// unlike other declarations in the request, it keeps the prompt cache (beta header
// inline-tools-2026-09-15). An addition replaces a tool of the same name.
func (c Changes) AnthropicMessage() any {
	type tool struct {
		Type       string          `json:"type"`
		Name       string          `json:"name,omitempty"`
		Definition json.RawMessage `json:"definition,omitempty"`
	}
	type block struct {
		Type string `json:"type"`
		Tool tool   `json:"tool"`
	}
	message := struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}{Role: "system"}
	for _, name := range c.Removed {
		message.Content = append(message.Content, block{"tool_removal", tool{Type: "tool_reference", Name: name}})
	}
	for _, list := range [][]json.RawMessage{c.Changed, c.Added} {
		for _, d := range list {
			message.Content = append(message.Content,
				block{"tool_addition", tool{Type: "tool_definition", Definition: d}})
		}
	}
	return message
}

// declaredTool is one declaration of an output.
type declaredTool struct {
	name string
	data json.RawMessage // compact
}

// declared returns the declarations in an output, in order.
func declared(data []byte) (out []declaredTool, err error) {
	data = bytes.TrimSpace(text.WithoutMark(data))
	if !json.Valid(data) {
		return nil, errors.New("it is not JSON")
	}
	add := func(name string, raw json.RawMessage) {
		out = append(out, declaredTool{name, jsonx.AppendCompact(nil, raw)})
	}
	var walk func(raw json.RawMessage) error
	walk = func(raw json.RawMessage) error {
		if list, ok := jsonx.Elements(raw); ok {
			for _, item := range list {
				if err := walk(item); err != nil {
					return err
				}
			}
			return nil
		}
		o := asObject(raw)
		for _, around := range []string{"tools", "functionDeclarations"} {
			if _, ok := jsonx.Elements(o[around]); ok {
				return walk(o[around])
			}
		}
		for _, named := range []object{o, asObject(o["function"]), asObject(o["toolSpec"])} {
			if isText(named["name"]) {
				add(named.text("name"), raw)
				return nil
			}
		}
		switch {
		case o == nil:
			return errors.New("it has no declarations")
		case isText(o["type"]), o.has("cachePoint"): // a tool that the provider runs, or no tool
			return nil
		}
		for name, schema := range jsonx.Members(raw) { // json-schema
			if asObject(schema) == nil {
				return errors.New("it has no declarations")
			}
			add(name, schema)
		}
		return nil
	}
	return out, walk(data)
}

// shape distinguishes declarations of different formats.
func (d declaredTool) shape() string {
	o := asObject(d.data)
	for _, key := range []string{"function", "toolSpec", "input_schema", "inputSchema"} {
		if o.has(key) {
			return key
		}
	}
	if o.text("type") == "function" {
		return "a function"
	}
	if o.has("name") {
		return "named"
	}
	return "a schema"
}
