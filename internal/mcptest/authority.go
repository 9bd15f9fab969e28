package mcptest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
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

// signer signs access tokens, with another library than the one that verifies them.
type signer struct {
	method jwt.SigningMethod
	id     string
	key    crypto.Signer
	public map[string]string // as a JSON Web Key
}

// newSigner makes a key for an algorithm: RS256, ES256 or EdDSA.
func newSigner(algorithm string) (*signer, error) {
	s := &signer{method: jwt.GetSigningMethod(algorithm), id: rand.Text()}
	encode := base64.RawURLEncoding.EncodeToString
	switch algorithm {
	case "RS256":
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		s.key, s.public = key, map[string]string{"kty": "RSA", "n": encode(key.N.Bytes()), "e": "AQAB"}
	case "ES256":
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		point, err := key.PublicKey.Bytes() // 4, then x and y with 32 bytes each
		if err != nil {
			return nil, err
		}
		s.key, s.public = key,
			map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
	default:
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		s.key, s.public = key, map[string]string{"kty": "OKP", "crv": "Ed25519", "x": encode(public)}
	}
	s.public["kid"], s.public["use"], s.public["alg"] = s.id, "sig", algorithm
	return s, nil
}

// Rotate replaces the key that signs access tokens; the one before is not published any more.
func (a *Authority) Rotate() error {
	s, err := newSigner(a.o.jwt)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.signer = s
	return nil
}

// Token returns an access token of a person with more claims, which may replace those that it
// would have. It lives for an hour. a.mu is not held.
func (a *Authority) Token(resource string, scopes []string, more map[string]any) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sign(resource, scopes, time.Hour, more)
}

// sign makes an access token (RFC 9068). a.mu is held.
func (a *Authority) sign(resource string, scopes []string, ttl time.Duration, more map[string]any) (string, error) {
	claims := jwt.MapClaims{
		"iss": a.Issuer, "aud": resource, "sub": a.o.person, "exp": a.Now().Add(ttl).Unix(),
		"iat": a.Now().Unix(), "jti": rand.Text(), "scope": strings.Join(scopes, " "),
	}
	if a.o.groups != "" {
		claims["groups"] = strings.Fields(a.o.groups)
	}
	maps.Copy(claims, more)
	t := jwt.NewWithClaims(a.signer.method, claims)
	t.Header["kid"], t.Header["typ"] = a.signer.id, "at+jwt"
	return t.SignedString(a.signer.key)
}

// proof checks the proof of a request (RFC 9449 section 4.3), with another library than the
// one that made it, and returns the thumbprint of its key. It returns "" if no proof is needed.
// The error is the code to answer with. token is the access token of the request.
func (a *Authority) proof(w http.ResponseWriter, r *http.Request, token string) (string, error) {
	if !a.o.dpop {
		return "", nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := a.nonce
	if a.o.nonces {
		a.nonce = rand.Text()
		w.Header().Set("DPoP-Nonce", a.nonce)
	}
	var claims struct {
		jwt.RegisteredClaims
		Method string `json:"htm"`
		Target string `json:"htu"`
		Hash   string `json:"ath"`
		Nonce  string `json:"nonce"`
	}
	var thumbprint string
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		return "", errors.New("invalid_dpop_proof")
	}
	_, err := jwt.ParseWithClaims(proofs[0], &claims, func(t *jwt.Token) (any, error) {
		if t.Header["typ"] != "dpop+jwt" {
			return nil, errors.New("another type")
		}
		key, _ := t.Header["jwk"].(map[string]any)
		if len(key) != 4 || key["kty"] != "EC" || key["crv"] != "P-256" {
			return nil, errors.New("another key")
		}
		sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, key["x"], key["y"]))
		thumbprint = base64.RawURLEncoding.EncodeToString(sum[:])
		point := []byte{4}
		for _, name := range []string{"x", "y"} {
			text, _ := key[name].(string)
			data, err := base64.RawURLEncoding.DecodeString(text)
			if err != nil {
				return nil, err
			}
			point = append(point, data...)
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithTimeFunc(a.Now), jwt.WithStrictDecoding())
	hash := ""
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		hash = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	age := time.Duration(1 << 62)
	if claims.IssuedAt != nil {
		age = a.Now().Sub(claims.IssuedAt.Time).Abs()
	}
	if err != nil || claims.Method != r.Method || claims.Target != "http://"+r.Host+r.URL.Path ||
		claims.Hash != hash || age > time.Minute || claims.ID == "" || a.proofs[claims.ID] {
		return "", errors.New("invalid_dpop_proof")
	}
	a.proofs[claims.ID] = true
	if claims.Nonce != wanted {
		return "", errors.New("use_dpop_nonce")
	}
	return thumbprint, nil
}
