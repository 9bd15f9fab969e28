package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/webaddr"
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

// ForAPI returns the Client of an API with the setting oauth, which is expanded. Unlike an MCP
// server, an API is not asked how to log in: its settings name the issuer or the endpoints, its
// tokens have no resource (RFC 8707), because many authorization servers do not accept one, and no
// request is sent without a token.
func ForAPI(a settings.API, store *Store, warn func(error)) *Client {
	if a.URL == "" {
		a.URL = root(a.Spec)
	}
	c := New(a.Server, store, warn)
	c.isAPI = true
	return c
}

// Reread sets how to expand the settings again when the authorization server refuses a login
// without a user: secrets from files and commands may have been replaced. Call it before any other
// method.
func (c *Client) Reread(expand func(context.Context) (*settings.OAuth, error)) {
	c.secrets.Reread(func(ctx context.Context) (secrets, error) {
		now, err := expand(ctx)
		if err != nil || now == nil {
			return c.secrets.Load(), err
		}
		return secretsOf(*now), nil
	})
}

// For selects the login of a client of serve (oauth.per: client); "" means the person's. Call it
// before any other method.
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

// server is an MCP server or an API as the settings describe it, together with whose login it is.
// It talks to authorization servers and reads and writes the stored login, but does not know the
// state of a [Client], and does not change once it is in use.
type server struct {
	name    string // in the settings
	isAPI   bool
	foreign bool        // the settings of a project name it
	url     string      // without user, query and fragment
	query   string      // of the URL, which may contain a secret
	headers http.Header // of the settings, for all requests to its origin
	client  string      // client of serve whose login it is; "" means the person's
	config  settings.OAuth
	store   *Store
	now     func() time.Time
}

// key returns the key of the login. It depends on the URL and the values of the OAuth
// settings, so that changing them requires a new login. A default is the same as no value.
func (s *server) key() string {
	o := s.config
	if o.Grant == settings.GrantAuthorizationCode {
		o.Grant = ""
	}
	parts := []string{"1", s.url, s.query, o.Grant, o.ClientID,
		o.Issuer, o.AuthorizationURL, o.TokenURL, o.IDPIssuer}
	if o.DPoP != "" && o.DPoP != settings.DPoPAuto {
		parts = append(parts, "dpop", o.DPoP)
	}
	if o.Resource != "" {
		parts = append(parts, "resource", o.Resource)
	}
	if s.disclosing() { // consent to a login without a secret does not cover sending one
		parts = append(parts, "secret")
	}
	if s.client != "" {
		parts = append(parts, "client", s.client)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00"))) // a change of any part requires a new login
	return hex.EncodeToString(sum[:])
}

// unattended reports whether tokens are obtained without a user.
func (s *server) unattended() bool {
	return s.config.Grant == settings.GrantClientCredentials || s.config.Grant == settings.GrantJWTBearer
}

// web returns the connection to the authorization server. The caller closes it.
func (s *server) web() *web {
	o := s.config
	w := newWeb(s.url, o.Issuer, o.AuthorizationURL, o.TokenURL, o.RegistrationURL, o.IDPIssuer)
	if u, err := url.Parse(s.url); err == nil {
		w.origin, w.headers = webaddr.Origin(u), s.headers
	}
	return w
}

// checkSecure returns an error if no token may be sent to the server.
func (s *server) checkSecure() error {
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme != "https" && !webaddr.IsLoopback(u.Hostname()) {
		return errors.New("its address is not https, so toolreg does not send a login there")
	}
	return nil
}

func (s *server) needLogin(reason string) error {
	command := "toolreg servers login " + text.ShellWord(s.name)
	if s.client != "" {
		command += " --client " + text.ShellWord(s.client)
	}
	return &registry.Failure{Text: reason + "; run " + command, Kind: registry.ErrNeedsLogin}
}

// disclosing reports whether a secret of the settings would be sent to an authorization server that
// the MCP server specifies. A signature made with a private key discloses nothing, because it is
// valid for only one issuer.
func (s *server) disclosing() bool {
	o := s.config
	return o.ClientID != "" && o.ClientSecret+o.Assertion != "" && o.Issuer == "" && o.TokenURL == ""
}

// place returns where the login is stored.
func (s *server) place(ctx context.Context) (Place, error) {
	if s.client != "" && s.store.Clients != nil {
		return s.store.Clients(ctx)
	}
	d, err := s.store.dir()
	return folder{d}, err
}

// readRecord returns the stored login; nil if there is none.
func (s *server) readRecord(ctx context.Context) (*record, error) {
	place, err := s.place(ctx)
	if err != nil {
		return nil, err
	}
	data, err := place.Read(ctx, s.key())
	if err != nil {
		return nil, err
	}
	return parseRecord(data, s.key())
}

// update replaces the stored login while holding its lock. change receives nil if there is no
// readable record; its result is saved, unless it is nil.
func (s *server) update(ctx context.Context, change func(*record) (*record, error)) error {
	place, err := s.place(ctx)
	if err != nil {
		return err
	}
	return place.Update(ctx, s.key(), func(old []byte) ([]byte, error) {
		was, _ := parseRecord(old, s.key()) // a damaged record is not used
		r, err := change(was)
		if err != nil || r == nil {
			return nil, err
		}
		r.Version, r.Key, r.Of = recordVersion, s.key(), s.client
		data, err := json.MarshalIndent(r, "", "  ")
		return append(data, '\n'), err
	})
}

func (s *server) removeRecord(ctx context.Context) error {
	place, err := s.place(ctx)
	if err != nil {
		return err
	}
	return place.Remove(ctx, s.key())
}

// plainAddress returns a URL in normal form without user, query and fragment, and
// its query.
func plainAddress(raw string) (plain, query string) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", ""
	}
	query = u.RawQuery
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	return u.String(), query
}

// root returns scheme://host[:port] of a URL.
func root(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
