package oauth

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
)

// Client handles OAuth for one MCP server or API. Creating one costs nothing. It is
// safe for concurrent use.
type Client struct {
	server
	secrets *secret.Current[secrets] // for tokens without a user
	warn    func(error)              // never nil

	mu        sync.Mutex // one renewal at a time
	loaded    bool
	record    *record   // nil means not logged in
	followed  time.Time // when it was last compared with the stored one
	renewed   string    // access token obtained after a refusal
	challenge challenge // the most recent one
	nonce     string    // the server's last one for proofs
	agreed    string    // issuer that the user allowed to receive a secret of the settings
}

// New returns the Client of an HTTP server whose settings are expanded. warn is
// called if a token is valid but cannot be stored; it may be nil.
func New(s settings.Server, store *Store, warn func(error)) *Client {
	c := &Client{warn: warn, server: server{
		name: s.Name, foreign: s.Origin.Scope == settings.ScopeProject, store: store, now: time.Now,
	}}
	if s.OAuth != nil {
		c.config = *s.OAuth
	}
	c.secrets = secret.NewCurrent(secretsOf(c.config))
	c.url, c.query = plainAddress(cmp.Or(s.HTTPURL, s.URL))
	c.headers = http.Header{}
	for _, h := range s.Headers {
		if !strings.EqualFold(h.Name, "Authorization") { // which is for the server, not for what issues its tokens
			c.headers.Add(h.Name, h.Value)
		}
	}
	if c.warn == nil {
		c.warn = func(error) {}
	}
	return c
}

// ForAPI returns the Client of an API with the setting oauth, which is expanded. In contrast
// to an MCP server, an API is not asked how to log in: its settings name the issuer or the
// endpoints, its tokens are for no resource (RFC 8707), which many authorization servers do
// not accept, and no request is sent without a token.
func ForAPI(a settings.API, store *Store, warn func(error)) *Client {
	if a.URL == "" {
		a.URL = root(a.Spec)
	}
	c := New(a.Server, store, warn)
	c.isAPI = true
	return c
}

// Reread says how the settings are expanded again when the authorization server refuses a login without a user:
// secrets from files and commands are good for a time only. Call it before anything else.
func (c *Client) Reread(expand func(context.Context) (*settings.OAuth, error)) {
	c.secrets.Reread(func(ctx context.Context) (secrets, error) {
		now, err := expand(ctx)
		if err != nil || now == nil {
			return c.secrets.Load(), err
		}
		return secretsOf(*now), nil
	})
}

// For makes the login that of a client of serve (oauth.per: client); "" is the person's. Call
// it before anything else.
func (c *Client) For(client string) *Client {
	c.client = client
	return c
}

// loadRecord reads the stored login once. An unreadable one is ignored.
func (c *Client) loadRecord(ctx context.Context) {
	if c.loaded {
		return
	}
	c.loaded, c.followed = true, c.now()
	r, err := c.readRecord(ctx)
	if err != nil {
		c.warn(fmt.Errorf("reading the login of server %q: %w", c.name, err))
	}
	c.record = r
}

func (c *Client) loggedIn() bool { return c.record != nil && c.record.Token.Access != "" }

// secrets are those of the settings.
type secrets struct{ client, privateKey, assertion, idToken string }

func secretsOf(o settings.OAuth) secrets {
	return secrets{o.ClientSecret, o.PrivateKey, o.Assertion, o.IDToken}
}
