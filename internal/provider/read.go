package provider

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// options are the parser options for schemas and params. Numbers that do not fit
// into a double are errors, because some parsers reject a document that has one.
func options() jsonx.Options {
	return jsonx.Options{Depth: registry.MaxDepth, Number: func(token string) string {
		if len(token) <= 300 && !strings.ContainsAny(token, "eE") {
			return ""
		}
		if _, err := strconv.ParseFloat(token, 64); err != nil {
			return fmt.Sprintf("number %.40s is out of range", token)
		}
		return ""
	}}
}

// readSchema parses the input schema. A tool without one has no params.
func (e *encoder) readSchema(t *tool) error {
	raw := t.def.InputSchema
	if len(raw) > registry.MaxSchemaBytes {
		return fmt.Errorf("its schema has %d bytes, but the limit is %d", len(raw), registry.MaxSchemaBytes)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		t.schema, t.bare = emptyParams(), true
		return nil
	}
	n, err := e.parser.Parse(raw)
	if err != nil {
		return fmt.Errorf("its schema cannot be used: %w", err)
	}
	if n.Is(jsonx.Null) || n.Is(jsonx.Object) && len(n.Members) == 0 {
		t.schema, t.bare = emptyParams(), true
		return nil
	}
	if !n.Is(jsonx.Object) {
		return errors.New("its schema is not an object")
	}
	t.schema = n
	if e.parser.Duplicate {
		e.changed(t, []string{"duplicate keys of an object removed, keeping the last value"})
	}
	return nil
}

// emptyParams is the schema of a tool without params.
func emptyParams() *jsonx.Value {
	s := schema.OfType("object")
	s.Set("properties", jsonx.NewObject())
	return s
}

// reread parses a schema again after it was changed.
func (e *encoder) reread(raw []byte) *jsonx.Value {
	if n, err := e.parser.Parse(raw); err == nil && n.Is(jsonx.Object) {
		return n
	}
	return emptyParams()
}

// object parses another JSON object of a definition.
func (e *encoder) object(raw []byte) (*jsonx.Value, error) { return e.parse(raw, jsonx.Object) }

// array parses another JSON array of a definition.
func (e *encoder) array(raw []byte) (*jsonx.Value, error) { return e.parse(raw, jsonx.Array) }

func (e *encoder) parse(raw []byte, kind jsonx.Kind) (*jsonx.Value, error) {
	if len(raw) > registry.MaxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, but the limit is %d", len(raw), registry.MaxSchemaBytes)
	}
	n, err := e.parser.Parse(raw)
	if err == nil && !n.Is(kind) {
		err = fmt.Errorf("it is not %s", kind)
	}
	return n, err
}

// outputSchema parses the output schema of a tool, which must be an object.
func (e *encoder) outputSchema(raw []byte) (*jsonx.Value, error) {
	n, err := e.object(raw)
	if err == nil {
		err = schema.CheckObject(n)
	}
	if err == nil {
		rewrite.TypeRoot(n)
		rewrite.ObjectProperties(n)
	}
	return n, err
}
