package serve

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// headerSchema returns the part of a tool's input schema that the SDK needs: the params
// that clients repeat in HTTP headers (revision 2026-07-28, x-mcp-header), which the SDK
// compares with the headers of each call. The SDK would not accept every schema, and it
// reads the schema at each call.
func headerSchema(declaration json.RawMessage) any {
	input := jsonx.Get(declaration, "inputSchema")
	if !wire.NamesParamHeaders(input) || wire.CheckParamHeaders(input) != nil {
		return &headerParams{Type: "object"}
	}
	schema := headerParamsOf(input)
	schema.Type = "object"
	return schema
}

// headerParams is a schema that has only the params repeated in headers.
type headerParams struct {
	Type       string                   `json:"type"`
	Header     string                   `json:"x-mcp-header,omitempty"`
	Properties map[string]*headerParams `json:"properties,omitempty"`
}

// headerParamsOf reads a schema as clients do, for whom the names of members are exact.
func headerParamsOf(schema json.RawMessage) *headerParams {
	p := &headerParams{Properties: map[string]*headerParams{}}
	p.Type, _ = jsonx.Text(jsonx.Get(schema, "type"))
	p.Header, _ = jsonx.Text(jsonx.Get(schema, "x-mcp-header"))
	for name, property := range jsonx.Members(jsonx.Get(schema, "properties")) {
		if one := headerParamsOf(property); one.Header != "" || len(one.Properties) > 0 {
			p.Properties[name] = one
		}
	}
	return p
}
