package mcptest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
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
	keep      bool
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

// NewAuthority returns an Authority configured by command-line flags; see the
// flags for the options.
func NewAuthority(args ...string) (*Authority, error) {
	a := &Authority{
		Now: time.Now, counts: map[string]int{}, clients: map[string]*client{}, codes: map[string]*grant{},
		access: map[string]*grant{}, refresh: map[string]*grant{}, proofs: map[string]bool{},
	}
	f := flag.NewFlagSet("authority", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.DurationVar(&a.o.ttl, "ttl", time.Hour, "lifetime of access tokens; 0 = not said")
	f.StringVar(&a.o.scopes, "scopes", "", "scopes that the metadata of both name")
	f.StringVar(&a.o.need, "need", "", "scope that tools/call needs")
	f.StringVar(&a.o.clientID, "client", "", "`ID` of a client that is registered already")
	f.StringVar(&a.o.secret, "secret", "", "its secret")
	f.StringVar(&a.o.method, "method", "none", "how clients prove themselves")
	f.StringVar(&a.o.fault, "fault", "", "what to do wrong")
	f.BoolVar(&a.o.noDCR, "no-registration", false, "register no clients")
	f.BoolVar(&a.o.cimd, "documents", false, "take client metadata documents")
	f.BoolVar(&a.o.legacy, "legacy", false,
		"publish nothing, as in revision 2025-03-26, and be at the server's own address")
	f.BoolVar(&a.o.open, "open", false, "want no login, though one is possible")
	f.BoolVar(&a.o.keep, "keep", false, "do not rotate refresh tokens")
	f.BoolVar(&a.o.noRefresh, "no-refresh", false, "give no refresh tokens")
	f.BoolVar(&a.o.lazy, "lazy", false, "want a login for tools/call alone")
	f.BoolVar(&a.o.api, "api", false, "protect an API, and know no resources")
	f.StringVar(&a.o.host, "host", "", "name this `URL` as the issuer's endpoints")
	f.StringVar(&a.o.hang, "hang", "", "never answer at this `PATH`")
	f.BoolVar(&a.o.dpop, "dpop", false, "bind tokens to the keys of proofs")
	f.BoolVar(&a.o.nonces, "nonces", false, "want a new nonce in every proof")
	f.StringVar(&a.o.jwt, "jwt", "",
		"give access tokens that are JSON Web Tokens, signed with this algorithm, for any resource")
	f.StringVar(&a.o.person, "person", "person", "their subject")
	f.StringVar(&a.o.groups, "groups", "", "their groups")
	f.BoolVar(&a.o.users, "users", false,
		"give each user, who is the one in the cookie \"user\" of the browser, tools, prompts and resources of their own")
	f.BoolVar(&a.away, "away", false, "answer nothing until /back is requested; /away begins it again")
	f.StringVar(&a.o.mark, "mark", "", "write to `FILE` when that begins")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o := options{}
	a.mcp = o.handler()
	if a.o.jwt != "" {
		if err := a.Rotate(); err != nil {
			return nil, err
		}
	}
	if a.o.clientID != "" {
		a.clients[a.o.clientID] = &client{id: a.o.clientID, secret: a.o.secret, method: a.o.method}
	}
	return a, nil
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

// ServeHTTP serves the authorization server.
func (a *Authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.o.hang != "" && r.URL.Path == a.o.hang {
		_, _ = io.Copy(io.Discard, r.Body)
		if a.o.mark != "" && writeWhole(a.o.mark, "here") != nil {
			return
		}
		<-r.Context().Done()
		return
	}
	a.mu.Lock()
	switch r.URL.Path {
	case "/away", "/back":
		a.away = r.URL.Path == "/away"
		a.mu.Unlock()
		return
	}
	away := a.away
	a.mu.Unlock()
	if away {
		http.Error(w, "later", http.StatusServiceUnavailable)
		return
	}
	switch r.URL.Path {
	case "/keys":
		a.keys(w, r)
	case "/issue":
		token, err := a.Token(r.FormValue("resource"), strings.Fields(r.FormValue("scope")), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, token)
	case "/rotate":
		if err := a.Rotate(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	case "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration":
		a.metadata(w, r)
	case "/register":
		a.register(w, r)
	case "/authorize":
		a.authorize(w, r)
	case "/token":
		a.token(w, r)
	case "/revoke":
		a.revoke(w, r)
	case "/expire":
		a.Expire()
	case "/counts":
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(a.counts)) {
			fmt.Fprintf(w, "%s: %d\n", name, a.counts[name])
		}
	default:
		http.NotFound(w, r)
	}
}

func (a *Authority) metadata(w http.ResponseWriter, r *http.Request) {
	a.count("metadata")
	if a.o.legacy || strings.HasSuffix(r.URL.Path, "openid-configuration") {
		http.NotFound(w, r)
		return
	}
	base := a.Issuer
	if a.o.host != "" {
		base = a.o.host
	}
	m := map[string]any{
		"issuer": a.Issuer, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token",
		"revocation_endpoint": base + "/revoke", "registration_endpoint": base + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{a.o.method},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          a.o.cimd,
		"scopes_supported":                               strings.Fields(a.o.scopes),
	}
	if a.o.jwt != "" {
		m["jwks_uri"] = base + "/keys"
	}
	if a.o.dpop {
		m["dpop_signing_alg_values_supported"] = []string{"ES256"}
	}
	if a.o.noDCR {
		delete(m, "registration_endpoint")
	}
	switch a.o.fault {
	case "issuer":
		m["issuer"] = "https://elsewhere.example"
	case "no-pkce":
		delete(m, "code_challenge_methods_supported")
	case "huge":
		m["padding"] = strings.Repeat("x", 2<<20)
	case "private-redirect":
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		return
	}
	if address, ok := strings.CutPrefix(a.o.fault, "authorize="); ok {
		m["authorization_endpoint"] = address
	}
	if address, ok := strings.CutPrefix(a.o.fault, "token="); ok {
		m["token_endpoint"] = address
	}
	reply(w, http.StatusOK, m)
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

func (a *Authority) register(w http.ResponseWriter, r *http.Request) {
	a.count("register")
	var m struct {
		RedirectURIs []string `json:"redirect_uris"`
		Method       string   `json:"token_endpoint_auth_method"`
		GrantTypes   []string `json:"grant_types"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m)
	if a.o.noDCR || err != nil || len(m.RedirectURIs) != 1 ||
		m.Method != a.o.method || !slices.Contains(m.GrantTypes, "refresh_token") {
		refuse(w, http.StatusBadRequest, "invalid_client_metadata")
		return
	}
	c := &client{id: "registered-" + rand.Text(), method: m.Method, redirect: m.RedirectURIs[0]}
	out := map[string]any{"client_id": c.id, "redirect_uris": m.RedirectURIs, "token_endpoint_auth_method": m.Method}
	if m.Method != "none" {
		c.secret = "secret-" + rand.Text()
		out["client_secret"], out["client_secret_expires_at"] = c.secret, 0
	}
	a.mu.Lock()
	a.clients[c.id] = c
	a.mu.Unlock()
	reply(w, http.StatusCreated, out)
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

// authorize grants access at once, as if the user were already logged in.
func (a *Authority) authorize(w http.ResponseWriter, r *http.Request) {
	a.count("authorize")
	q := r.URL.Query()
	c := a.known(q.Get("client_id"))
	back, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case c == nil:
		http.Error(w, "unknown client", http.StatusBadRequest)
		return
	case err != nil || c.redirect != "" && c.redirect != q.Get("redirect_uri"):
		http.Error(w, "unknown redirect_uri", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		len(q.Get("code_challenge")) != 43 ||
		q.Get("state") == "" || !a.isTarget(q.Get("resource")) || len(q["resource"]) > 1:
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	g := &grant{client: c.id, redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
		resource: q.Get("resource"), scopes: strings.Fields(q.Get("scope")), dead: new(bool)}
	if user, err := r.Cookie("user"); err == nil {
		g.user = user.Value
	}
	code := "code-" + rand.Text()
	a.mu.Lock()
	a.codes[code] = g
	a.mu.Unlock()
	out := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.Issuer}}
	switch a.o.fault {
	case "state":
		out.Set("state", "another")
	case "iss":
		out.Set("iss", "https://elsewhere.example")
	case "no-iss":
		out.Del("iss")
	case "deny":
		out = url.Values{"error": {"access_denied"}, "error_description": {"the person\x1b[31m said no"},
			"state": {q.Get("state")}, "iss": {a.Issuer}}
	case "silence":
		_, _ = io.WriteString(w, "think about it")
		return
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
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
