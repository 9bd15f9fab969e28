package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"
)

// mirrorKey is the keyword of an input schema that names the HTTP header which
// repeats a param, for what stands between client and server and reads no
// bodies (revision 2026-07-28, streamable HTTP, "Custom Headers from Tool
// Parameters"). The SDK fills the headers.
const mirrorKey = "x-mcp-header"

// maxMirrorDepth bounds the nesting of a schema that is searched for it.
const maxMirrorDepth = 100

// mirrorsParams reports whether a listed tool wants params mirrored in HTTP
// headers and can be read by the SDK, which does that.
func mirrorsParams(raw json.RawMessage) bool {
	if !bytes.Contains(raw, []byte(`"`+mirrorKey+`"`)) {
		return false
	}
	var t mcp.Tool
	return json.Unmarshal(raw, &t) == nil
}

// checkMirrored returns what is wrong with the headers that an input schema
// asks for. A tool with such a schema must not be offered by a client that
// speaks streamable HTTP: the server would refuse what it cannot be sent.
func checkMirrored(schema json.RawMessage) error {
	if !bytes.Contains(schema, []byte(`"`+mirrorKey+`"`)) {
		return nil
	}
	m := mirrored{seen: map[string]bool{}}
	return m.schema(schema, true, 0)
}

// mirrored is one walk over an input schema.
type mirrored struct {
	seen map[string]bool // header names in lower case
}

// schema checks a schema; reachable says that nothing but "properties" leads to
// it from the root, whose depth is 0.
func (m *mirrored) schema(raw json.RawMessage, reachable bool, depth int) error {
	if depth > maxMirrorDepth {
		return fmt.Errorf("its inputSchema holds %s and is nested deeper than %d levels", mirrorKey, maxMirrorDepth)
	}
	for key, value := range members(raw) {
		var err error
		switch key {
		case mirrorKey:
			err = m.header(value, member(raw, "type"), reachable && depth > 0)
		case "properties":
			for _, property := range members(value) {
				if err := m.schema(property, reachable, depth+1); err != nil {
					return err
				}
			}
		case "patternProperties", "dependentSchemas", "$defs", "definitions":
			for _, sub := range members(value) {
				if err := m.schema(sub, false, depth+1); err != nil {
					return err
				}
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "oneOf", "anyOf", "allOf", "not",
			"if", "then", "else", "additionalProperties", "unevaluatedProperties", "propertyNames":
			err = m.elsewhere(value, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// elsewhere checks a schema or a list of schemas in a place where no header may
// be asked for.
func (m *mirrored) elsewhere(raw json.RawMessage, depth int) error {
	list, ok := elements(raw)
	if !ok {
		return m.schema(raw, false, depth)
	}
	for _, sub := range list {
		if err := m.schema(sub, false, depth); err != nil {
			return err
		}
	}
	return nil
}

func (m *mirrored) header(value, kind json.RawMessage, reachable bool) error {
	name, ok := text(value)
	switch {
	case !ok || name == "":
		return errors.New("its " + mirrorKey + " is no name")
	case !reachable:
		return fmt.Errorf("its %s %s stands where it is not reached by properties alone", mirrorKey, quote(name))
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("its %s %s is no name of an HTTP header", mirrorKey, quote(name))
	case m.seen[strings.ToLower(name)]:
		return fmt.Errorf("its %s %s comes twice", mirrorKey, quote(name))
	}
	m.seen[strings.ToLower(name)] = true
	if t, _ := text(kind); !slices.Contains([]string{"string", "integer", "boolean"}, t) {
		return fmt.Errorf("its %s %s is about a param that is no string, integer or boolean", mirrorKey, quote(name))
	}
	return nil
}
