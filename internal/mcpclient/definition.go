package mcpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// reading holds the definitions of a page, which are complete after Wait.
type reading struct {
	sync.WaitGroup
	definitions []definition
}

// definition is a listed tool, or the reason why it cannot be used.
type definition struct {
	registry.Definition
	err error
}

// readDefinitions reads the definitions of a page, in the background if the page is large.
func (o *Options) readDefinitions(items []json.RawMessage) *reading {
	r := &reading{definitions: make([]definition, len(items))}
	some := func(from, to int) {
		for i := from; i < to; i++ {
			d := &r.definitions[i]
			d.Definition, d.err = o.definition(items[i])
		}
	}
	const share = 64
	if len(items) <= share {
		some(0, len(items))
		return r
	}
	for from := 0; from < len(items); from += share {
		r.Go(func() { some(from, min(from+share, len(items))) })
	}
	return r
}

// definition reads one element of a tools/list result (revision 2025-11-25). If
// it returns an error, the Definition has the name of the tool, if known.
func (o *Options) definition(raw json.RawMessage) (registry.Definition, error) {
	d := registry.Definition{Source: registry.MCPPrefix + o.Server.Name,
		Server: o.Server.Name, Category: registry.CategoryOther, OutputMarkdown: true}
	if jsonx.KindOf(raw) != jsonx.Object {
		return d, errors.New("it is not an object")
	}
	var name, description json.RawMessage
	for key, value := range jsonx.Members(raw) {
		if jsonx.IsNull(value) || jsonx.IsEmptyList(value) && key != "icons" { // the others are no lists
			continue
		}
		switch key {
		case "name":
			name = value
		case "description":
			description = value
		case "inputSchema":
			d.InputSchema = value
		case "outputSchema":
			d.OutputSchema = value
		case "annotations":
			d.Annotations = value
		default:
			o.keepField(&d.MCP, key, value)
		}
	}
	var ok bool
	if d.ServerTool, ok = jsonx.Text(name); !ok || d.ServerTool == "" {
		return d, errors.New("it has no name")
	}
	d.Name = registry.ValidName(d.ServerTool)
	d.DisplayName = fmt.Sprintf("%s (%s MCP Server)", d.ServerTool, d.Server)
	if key, twice := jsonx.DuplicateKey(raw); twice {
		return d, fmt.Errorf("its definition repeats the key %s", text.Quote(key))
	}
	if description != nil {
		if d.Description, ok = jsonx.Text(description); !ok {
			return d, errors.New("its description is not a string")
		}
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(noParams)
	}
	return d, o.checkParts(&d)
}

// noParams is the input schema of a tool that does not declare one.
const noParams = `{"type":"object","properties":{}}`

// keepField keeps a field that toolreg only passes on. A malformed one is
// dropped, because it is not a reason to reject the tool.
func (o *Options) keepField(f *registry.MCPFields, key string, value json.RawMessage) {
	kind := jsonx.KindOf(value)
	switch {
	case int64(len(value)) > o.Limits.Schema:
	case key == "title":
		f.Title, _ = jsonx.Text(value)
	case key == "icons" && kind == jsonx.Array:
		f.Icons = value
	case key == "execution" && kind == jsonx.Object:
		f.Execution = value
	case key == "_meta" && kind == jsonx.Object:
		f.Meta = value
	}
}

// checkParts checks the parts that are kept as sent.
func (o *Options) checkParts(d *registry.Definition) error {
	for _, part := range []struct {
		name string
		raw  *json.RawMessage
	}{{"inputSchema", &d.InputSchema}, {"outputSchema", &d.OutputSchema}, {"annotations", &d.Annotations}} {
		switch {
		case *part.raw == nil:
			continue
		case jsonx.KindOf(*part.raw) != jsonx.Object:
			return fmt.Errorf("its %s is not an object", part.name)
		case int64(len(*part.raw)) > o.Limits.Schema:
			return fmt.Errorf("its %s has %d bytes, but the limit is %d (limits.schema)",
				part.name, len(*part.raw), o.Limits.Schema)
		}
	}
	return nil
}
