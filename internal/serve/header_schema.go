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
	schema := headerParams{Type: "object"}
	input := jsonx.Get(declaration, "inputSchema")
	if wire.NamesParamHeaders(input) && wire.CheckParamHeaders(input) == nil {
		_ = json.Unmarshal(input, &schema) // a mismatch, such as a list of types, is not in a param with a header
		schema.keep()
		schema.Type = "object"
	}
	return &schema
}

// headerParams is a schema that has only the params repeated in headers.
type headerParams struct {
	Type       string                   `json:"type"`
	Header     string                   `json:"x-mcp-header,omitempty"`
	Properties map[string]*headerParams `json:"properties,omitempty"`
}

// keep removes the properties without a header. It reports whether any is left or p
// itself has a header.
func (p *headerParams) keep() bool {
	for name, property := range p.Properties {
		if property == nil || !property.keep() {
			delete(p.Properties, name)
		}
	}
	return p.Header != "" || len(p.Properties) > 0
}
