package registry

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// A shape reports whether a member of an object has the type that MCP requires. Clients made with
// SDKs refuse a whole list of tools, or a whole result, if one member is null or has another type,
// and servers often get members wrong that few clients read.
type shape func(name string, value json.RawMessage) bool

// of returns an object without the members that do not have the shape; nil if raw is not an object.
func (s shape) of(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil
	}
	isFine := true
	fine := []byte{'{'}
	for name, value := range jsonx.Members(raw) {
		if !s(name, value) {
			isFine = false
			continue
		}
		if len(fine) > 1 {
			fine = append(fine, ',')
		}
		fine = append(append(jsonx.AppendQuote(fine, name), ':'), value...)
	}
	if isFine {
		return raw
	}
	return append(fine, '}')
}

func isText(raw json.RawMessage) bool { return jsonx.KindOf(raw) == jsonx.String }

func isTexts(raw json.RawMessage) bool {
	list, ok := jsonx.Elements(raw)
	return ok && !slices.ContainsFunc(list, func(e json.RawMessage) bool { return !isText(e) })
}

func toolHint(name string, value json.RawMessage) bool {
	switch name {
	case "title":
		return isText(value)
	case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
		return string(value) == "true" || string(value) == "false"
	}
	return true
}

func readHint(name string, value json.RawMessage) bool {
	switch name {
	case "audience":
		return isTexts(value)
	case "lastModified":
		return isText(value)
	case "priority":
		return jsonx.KindOf(value) == jsonx.Number
	}
	return true
}

func ofIcon(name string, value json.RawMessage) bool {
	switch name {
	case "src", "mimeType", "theme":
		return isText(value)
	case "sizes":
		return isTexts(value)
	}
	return true
}

// ToolHints returns a tool's annotations in the shape that MCP clients accept; nil if there are
// none.
func ToolHints(raw json.RawMessage) json.RawMessage { return shape(toolHint).of(raw) }

// ReadHints returns the annotations of a resource or content part in the shape that MCP clients
// accept; nil if there are none.
func ReadHints(raw json.RawMessage) json.RawMessage { return shape(readHint).of(raw) }

// Icons returns an item's icons in the shape that MCP clients accept; nil if there are none.
func Icons(raw json.RawMessage) json.RawMessage {
	list, _ := jsonx.Elements(raw)
	var out [][]byte
	for _, e := range list {
		if e = shape(ofIcon).of(e); isText(jsonx.Get(e, "src")) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return slices.Concat([]byte{'['}, bytes.Join(out, []byte{','}), []byte{']'})
}

// Meta returns a _meta in the shape that MCP clients accept; nil if there is none.
func Meta(raw json.RawMessage) json.RawMessage {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil
	}
	return raw
}
