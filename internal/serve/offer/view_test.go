package offer

import (
	"encoding/json"
	"testing"
)

func TestHeaderSchema(t *testing.T) {
	for declaration, want := range map[string]string{
		`{}`: `{"type":"object"}`,
		`{"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`:                                                                                    `{"type":"object"}`,
		`{"inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}`:                                                                 `{"type":"object"}`, // not allowed
		`{"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":["string","null"]},"c":true,"d":null,"e":{"properties":{"f":{}}}}}}`:    `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		`{"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","X-Mcp-Header":"B"}}}}`:                                        `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
		`{"inputSchema":{"type":["object"],"properties":{"o":{"type":"object","properties":{"in":{"type":"integer","x-mcp-header":"In"},"x":{"type":"string"}}}}}}`: `{"type":"object","properties":{"o":{"type":"object","properties":{"in":{"type":"integer","x-mcp-header":"In"}}}}}`,
	} {
		if got, err := json.Marshal(headerSchema(json.RawMessage(declaration))); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", declaration, got, err)
		}
	}
}
