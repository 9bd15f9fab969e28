package providers_test

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP reads the result of tools/list, and offers each tool by a server of
// the SDK, which panics at schemas that the protocol does not allow.
func TestMCP(t *testing.T) {
	out := toolreg(t, shared.settings, "", "schema", "--format", "mcp", "--request", "--source", "mcp:*")
	var result mcp.ListToolsResult
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	var raw struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(out, &raw); err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	names := newNames(t)
	for i, tool := range result.Tools {
		names.add(tool.Name)
		if !mcpName.MatchString(tool.Name) {
			t.Errorf("name %q", tool.Name)
		}
		var fields object // of annotations any are allowed, and the SDK's type lacks execution
		if err := json.Unmarshal(raw.Tools[i], &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "annotations")
		delete(fields, "execution")
		own, err := json.Marshal(fields)
		if err == nil {
			err = decodeStrictly(own, &mcp.Tool{})
		}
		if err != nil {
			t.Error(err)
		}
		server.AddTool(tool, nil)
	}
	names.want(len(names.seen), declarable())
}
