package mcptest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Authority is an OAuth authorization server for tests, together with the MCP
// server that it protects. It is as strict as the specifications, and
// misbehaves on demand. Both servers are handlers; set the URLs before the
// first request.
type Authority struct {
	Issuer   string // its own address
	Resource string // address of the MCP server, with the path
	Now      func() time.Time

	o   authorityOptions
	mcp http.Handler

	mu      sync.Mutex
	counts  map[string]int
	clients map[string]*client
	codes   map[string]*grant
	access  map[string]*grant
	refresh map[string]*grant
	proofs  map[string]bool // identifiers of proofs that were used
	users   map[string]http.Handler
	nonce   string  // of the next proof
	signer  *signer // of access tokens, with -jwt
	away    bool    // it answers nothing
}

type authorityOptions struct {
	registered
	ttl       time.Duration
	scopes    string
	need      string
	fault     string
	noDCR     bool
	cimd      bool
	legacy    bool
	open      bool
	noRefresh bool
	lazy      bool
	api       bool
	host      string
	hang      string
	mark      string
	dpop      bool
	nonces    bool
	jwt       string
	person    string
	groups    string
	users     bool
}

// registered is a client that the server knows from the beginning.
type registered struct {
	clientID string
	secret   string
	method   string
}

type client struct {
	id, secret, method, redirect string
}

// grant is the grant of a code or a token.
type grant struct {
	client, redirect, challenge, resource string
	scopes                                []string
	key                                   string // thumbprint of the key that its tokens are bound to, "" for none
	user                                  string
	expires                               time.Time
	dead                                  *bool // shared by all tokens of one login
}

func (a *Authority) count(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[what]++
}

// Count returns how many requests there were for what: register, authorize,
// token followed by a space and the grant type, revoke, mcp or metadata.
func (a *Authority) Count(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[what]
}

// Expire makes all access tokens expire.
func (a *Authority) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
}

// Forget forgets the clients that were registered, and what they were granted.
func (a *Authority) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.clients)
	clear(a.access)
	clear(a.refresh)
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func refuse(w http.ResponseWriter, status int, code string) {
	reply(w, status, map[string]string{"error": code, "error_description": "the authority of the tests says no"})
}

// known returns a client; one whose id is a document has no secret.
func (a *Authority) known(id string) *client {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[id]; c != nil {
		return c
	}
	if a.o.cimd && strings.HasPrefix(id, "https://") {
		return &client{id: id, method: "none"}
	}
	return nil
}

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
