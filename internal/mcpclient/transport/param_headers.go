package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/http/httpguts"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/schema"
	"github.com/toolreg/toolreg/internal/text"
)

// headerKeyword is the keyword of an input schema that names the HTTP header that
// repeats a param, for intermediaries that do not read bodies (revision
// 2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters"). The SDK
// fills the headers.
const headerKeyword = "x-mcp-header"

// maxSchemaDepth limits the nesting of schemas that are searched for the keyword.
const maxSchemaDepth = 100

// HasParamHeaders reports whether a listed tool requires params to be repeated
// in HTTP headers and can be parsed by the SDK, which does that.
func HasParamHeaders(raw json.RawMessage) bool {
	if !NamesParamHeaders(raw) {
		return false
	}
	var t mcp.Tool
	return json.Unmarshal(raw, &t) == nil
}

// NamesParamHeaders reports whether a schema may require that; it only searches for
// the keyword.
func NamesParamHeaders(raw json.RawMessage) bool {
	return bytes.Contains(raw, []byte(`"`+headerKeyword+`"`))
}

// CheckParamHeaders returns what is wrong with the headers that an input schema
// asks for. A client that speaks streamable HTTP must not offer a tool with
// such a schema: the server would refuse calls without the headers.
func CheckParamHeaders(inputSchema json.RawMessage) error {
	if !NamesParamHeaders(inputSchema) {
		return nil
	}
	m := headerCheck{seen: map[string]bool{}}
	return m.schema(inputSchema, true, 0)
}

// headerCheck is one walk over an input schema.
type headerCheck struct {
	seen map[string]bool // header names in lower case
}

// schema checks a schema; reachable says that only "properties" lead to it from
// the root, whose depth is 0.
func (m *headerCheck) schema(raw json.RawMessage, reachable bool, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("its inputSchema uses %s and is nested deeper than %d levels", headerKeyword, maxSchemaDepth)
	}
	for key, value := range jsonx.Members(raw) {
		var err error
		switch {
		case key == headerKeyword:
			err = m.header(value, jsonx.Get(raw, "type"), reachable && depth > 0)
		case schema.Under(key) == schema.Named:
			for _, sub := range jsonx.Members(value) {
				if err := m.schema(sub, reachable && key == "properties", depth+1); err != nil {
					return err
				}
			}
		case schema.Under(key) == schema.Schemas:
			list, ok := jsonx.Elements(value)
			if !ok {
				list = []json.RawMessage{value}
			}
			for _, sub := range list {
				if err := m.schema(sub, false, depth+1); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *headerCheck) header(value, kind json.RawMessage, reachable bool) error {
	name, ok := jsonx.Text(value)
	switch {
	case !ok || name == "":
		return errors.New("its " + headerKeyword + " is not a name")
	case !reachable:
		return fmt.Errorf("its %s %s is not reachable through properties alone", headerKeyword, text.Quote(name))
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("its %s %s is not a valid HTTP header name", headerKeyword, text.Quote(name))
	case m.seen[strings.ToLower(name)]:
		return fmt.Errorf("its %s %s occurs twice", headerKeyword, text.Quote(name))
	}
	m.seen[strings.ToLower(name)] = true
	if t, _ := jsonx.Text(kind); !slices.Contains([]string{"string", "integer", "boolean"}, t) {
		return fmt.Errorf("its %s %s belongs to a param that is not a string, integer or boolean", headerKeyword, text.Quote(name))
	}
	return nil
}
