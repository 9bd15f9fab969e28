package mcptest

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// UserInbox is a resource that each user of an authority with -users has. Their tool mail
// reports that it has changed.
const UserInbox = "user://inbox"

// userServer returns what a user is offered.
func (a *Authority) userServer(user string) http.Handler {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.users[user]; h != nil {
		return h
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "users", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	server.AddTool(&mcp.Tool{Name: "mail", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, server.ResourceUpdated(ctx,
				&mcp.ResourceUpdatedNotificationParams{URI: UserInbox})
		})
	for _, name := range []string{"whoami", "of_" + user} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: user}}}, nil
			})
	}
	server.AddPrompt(&mcp.Prompt{Name: "greet_" + user},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{
				Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Greet " + user}}},
			}, nil
		})
	server.AddResource(&mcp.Resource{URI: UserInbox, Name: "inbox of " + user},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{
				Contents: []*mcp.ResourceContents{{URI: UserInbox, Text: "mail of " + user}},
			}, nil
		})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	if a.users == nil {
		a.users = map[string]http.Handler{}
	}
	a.users[user] = h
	return h
}
