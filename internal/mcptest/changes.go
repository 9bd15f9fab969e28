package mcptest

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addChanges adds tools that change what the server offers.
func addChanges(s *mcp.Server) {
	add := func(name, schema string, h handle) {
		s.AddTool(&mcp.Tool{Name: name, Description: "A test of " + name + ".", InputSchema: json.RawMessage(schema)},
			mcp.ToolHandler(h))
	}
	greet := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("hello"), nil }
	add("grow", `{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string"}}}}`,
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var p struct{ Tools []string }
			if bad := read(r, &p); bad != nil {
				return bad, nil
			}
			for _, name := range slices.Sorted(slices.Values(p.Tools)) {
				add(name, `{"type":"object"}`, greet)
			}
			return say("grown"), nil
		})
	add("touch", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`,
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var p struct{ URI string }
			if bad := read(r, &p); bad != nil {
				return bad, nil
			}
			return say("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: p.URI})
		})
}
