package listcmd

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// The list is what encoding/json writes, although it does not write the schemas.
func TestListIsEncodedAsByTheLibrary(t *testing.T) {
	schema := json.RawMessage("{ \"type\" : \"object\",\n\t\"description\":\"a \\\" { , } b\", \"properties\":{\"x\":{\"enum\":[ 1.0, null , \"\\u202e \u2028 ä\" ]}} }")
	tools := []*registry.Tool{
		{Definition: registry.Definition{Name: "both", Source: "mcp:s", InputSchema: schema, OutputSchema: json.RawMessage(" {} "), Annotations: json.RawMessage(`{"inputSchema": 1}`)}},
		{Definition: registry.Definition{Name: "none", Description: `"inputSchema":{}`, Source: "builtin"}},
		{Definition: registry.Definition{Name: "output", Source: "mcp:s", OutputSchema: schema, MCP: registry.MCPFields{Meta: json.RawMessage(`{"outputSchema": "x"}`)}}},
	}
	want, err := cli.EncodeJSON(listedTools(tools, true))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(tools, true)
	if err != nil {
		t.Fatal(err)
	}
	all := append(text.EscapeJSON(got.appendTo([]byte("["))), "]\n"...) // printing escapes
	if diff := cmp.Diff(string(want), string(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
