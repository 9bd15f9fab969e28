package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/toolreg/toolreg/internal/text"
)

// LoginOptions defines how to interact with the user. At least one of Browse
// and Paste is required.
type LoginOptions struct {
	Scopes []string // scopes to request instead of those of the settings and the server

	// Agree asks the user whether an authorization server specified by the MCP
	// server may receive a secret; setting is the setting that contains it. If
	// nil, it may not.
	Agree func(ctx context.Context, issuer, setting string) (bool, error)

	// Browse opens a URL, which has been checked, in the user's browser. After
	// an error, the user has to open it. May be nil.
	Browse func(ctx context.Context, address string) error

	// Paste shows the URL to the user and returns what they paste: the URL at
	// which the browser ended, or the code in it. It returns when ctx ends.
	// After an error the login continues to wait for the browser. May be nil.
	Paste func(ctx context.Context, address string) (string, error)
}

// Login is the public information about a login.
type Login struct {
	Server   string    // URL
	Issuer   string    // issuer of the tokens
	Resource string    // resource of the tokens
	Scopes   []string  // granted
	Expires  time.Time // of the access token; zero if unknown
	Renews   bool      // whether it is renewed automatically
}

func (r *record) login() Login {
	l := Login{
		Server:   r.Server,
		Issuer:   r.Issuer,
		Resource: r.Resource,
		Scopes:   r.Token.Scopes,
		Renews:   r.Token.Refresh != "",
	}
	if r.Token.Expires != 0 {
		l.Expires = time.Unix(r.Token.Expires, 0).UTC()
	}
	return l
}

// Offered reports whether the server advertises support for logins, even if it
// does not require one.
func (c *Client) Offered(ctx context.Context) bool {
	w := c.web()
	defer w.close()
	issuers, err := c.protectedResource(ctx, w, challenge{}, &authority{})
	return err == nil && len(issuers) > 0
}

// Moved reports whether the server, which refused its login, now specifies
// different authorization servers (SEP-2352).
func (c *Client) Moved(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loadRecord(ctx)
	if c.record == nil || c.isAPI || c.config.Issuer != "" {
		return false
	}
	w := c.web()
	defer w.close()
	issuers, err := c.protectedResource(ctx, w, c.challenge, &authority{})
	return err == nil && len(issuers) > 0 && !slices.ContainsFunc(issuers, func(issuer string) bool {
		return isIssuer(strings.TrimSuffix(c.record.Issuer, "/"), strings.TrimSuffix(issuer, "/"))
	})
}

// Login lets the user log in and stores the tokens (MCP 2025-11-25,
// authorization code flow; PKCE with S256). It ends when ctx ends. If the
// settings allow a login without a user, it gets a token at once.
func (c *Client) Login(ctx context.Context, o LoginOptions) (Login, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkSecure(); err != nil {
		return Login{}, err
	}
	if c.unattended() {
		return c.loginUnattended(ctx, o)
	}
	// If the login cannot be stored, fail before the browser opens.
	var old *record
	err := c.update(ctx, func(r *record) (*record, error) { old = r; return nil, nil })
	if err != nil {
		return Login{}, fmt.Errorf("saving a login: %w", err)
	}
	w := c.web()
	defer w.close()
	r, err := c.authorize(ctx, w, old, o)
	if err != nil {
		return Login{}, err
	}
	return r.login(), c.keep(ctx, r)
}

// keep stores a new login.
func (c *Client) keep(ctx context.Context, r *record) error {
	if err := c.update(context.WithoutCancel(ctx), func(*record) (*record, error) { return r, nil }); err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	c.record, c.loaded, c.renewed, c.challenge.err = r, true, "", ""
	return nil
}

// loginUnattended gets a token without a browser. It asks the user about the
// issuer before it locks the login.
func (c *Client) loginUnattended(ctx context.Context, o LoginOptions) (Login, error) {
	if c.disclosing() {
		c.loadRecord(ctx)
		w := c.web()
		defer w.close()
		a, err := c.discover(ctx, w, c.challenge)
		if err == nil {
			err = c.consent(ctx, c.record, a.Issuer, o.Agree)
		}
		if err != nil {
			return Login{}, err
		}
	}
	if err := c.renew(ctx, "", c.challenge); err != nil {
		return Login{}, err
	}
	return c.record.login(), nil
}

// authorize performs the authorization code flow.
func (c *Client) authorize(ctx context.Context, w *web, old *record, o LoginOptions) (*record, error) {
	a, err := c.authorityFor(ctx, w, old, o)
	if err != nil {
		return nil, err
	}
	state := rand.Text()
	back, err := c.listen(ctx, old, state)
	if err != nil {
		return nil, err
	}
	defer back.close(ctx)
	begun, address, err := c.begin(ctx, w, a, old, back.redirect, state, o.Scopes)
	if err != nil {
		return nil, err
	}
	got, err := back.await(ctx, address, o)
	if err != nil {
		return nil, err
	}
	return c.finish(ctx, w, begun, got)
}

// authorityFor returns the authorization server for a login of the user.
func (c *Client) authorityFor(ctx context.Context, w *web, old *record, o LoginOptions) (*authority, error) {
	a, err := c.discover(ctx, w, c.challenge)
	if err != nil {
		return nil, err
	}
	if err := c.checkPKCE(a); err != nil {
		return nil, err
	}
	return a, c.consent(ctx, old, a.Issuer, o.Agree)
}

// begin prepares a login and returns the URL at which the user logs in. redirect is where the
// browser returns to.
func (c *Client) begin(ctx context.Context, w *web, a *authority, old *record,
	redirect, state string, asked []string) (*begun, string, error) {
	scopes := c.scopes(a, old, c.challenge, asked)
	id, err := c.identity(ctx, w, a, redirect, scopes, old)
	if err != nil {
		return nil, "", err
	}
	key, err := c.proofKey(a, "")
	if err != nil {
		return nil, "", err
	}
	b := &begun{
		State: state, Verifier: oauth2.GenerateVerifier(), Redirect: redirect, Unnamed: a.unnamed,
		SendsIssuer: a.SendsIssuer,
		Login: record{
			Server: c.url, Resource: a.resource, Issuer: a.Issuer, TokenURL: a.TokenEndpoint,
			RevokeURL: c.revocation(a), Client: id, ProofKey: key,
			Token: token{Scopes: scopes},
		},
	}
	address, err := c.authorizationURL(a, b)
	return b, address, err
}

// begun is a login whose browser has not returned yet.
type begun struct {
	State       string `json:"state"`
	Verifier    string `json:"verifier"` // of PKCE
	Redirect    string `json:"redirect"`
	Unnamed     bool   `json:"unnamed,omitempty"`     // see authority
	SendsIssuer bool   `json:"sendsIssuer,omitempty"` // the answer must have an issuer
	Login       record `json:"login"`                 // what is known of it, with the scopes that were requested
}

// finish gets the tokens for the code in an answer.
func (s *server) finish(ctx context.Context, w *web, b *begun, got reply) (*record, error) {
	if err := got.check(b); err != nil {
		return nil, err
	}
	r := b.Login
	form := url.Values{"grant_type": {grantCode}, "code": {got.code},
		"redirect_uri": {b.Redirect}, "code_verifier": {b.Verifier}}
	s.target(form, r.Resource)
	t, err := w.tokens(ctx, r.TokenURL, s.credentials(r.Client, r.Issuer, r.ProofKey), form, s.now())
	if err != nil {
		return nil, fmt.Errorf("asking %s for a token: %w", r.Issuer, err)
	}
	if len(t.Scopes) == 0 {
		t.Scopes = r.Token.Scopes
	}
	r.Token, r.LoggedInAt = t, s.now().Unix()
	return &r, nil
}

// Begin begins a login whose user has a browser elsewhere, which returns to redirect with a state
// that begins with prefix. It returns the URL at which the user logs in and the data that
// [Client.Finish] needs, which contains secrets. A secret of the settings is sent only to an
// authorization server that they name.
func (c *Client) Begin(ctx context.Context, redirect, prefix string) (address string, pending []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkSecure(); err != nil {
		return "", nil, err
	}
	old, err := c.readRecord(ctx)
	if err != nil && !errors.Is(err, errDamaged) {
		return "", nil, err
	}
	w := c.web()
	defer w.close()
	a, err := c.authorityFor(ctx, w, old, LoginOptions{})
	if err != nil {
		return "", nil, err
	}
	b, address, err := c.begin(ctx, w, a, old, redirect, prefix+rand.Text(), nil)
	if err != nil {
		return "", nil, err
	}
	pending, err = json.Marshal(b)
	return address, pending, err
}

// Finish ends a login that [Client.Begin] began, with the query with which the browser has
// returned, and stores the tokens.
func (c *Client) Finish(ctx context.Context, pending []byte, answer url.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b begun
	if err := json.Unmarshal(pending, &b); err != nil {
		return fmt.Errorf("a pending login cannot be read: %w", err) // our own data
	}
	w := c.web()
	defer w.close()
	r, err := c.finish(ctx, w, &b, readReply(answer))
	if err != nil {
		return err
	}
	return c.keep(ctx, r)
}

// checkPKCE refuses an authorization server that does not declare support for
// PKCE, as the MCP specification demands. Endpoints from the settings, and
// servers that publish no metadata, are accepted.
func (s *server) checkPKCE(a *authority) error {
	if a.guessed || s.config.AuthorizationURL != "" || slices.Contains(a.ChallengeMethods, "S256") {
		return nil
	}
	return fmt.Errorf("the authorization server %s does not advertise PKCE with S256, which a login requires; if it is supported, set oauth.authorizationUrl to %s",
		a.Issuer, a.AuthorizationEndpoint)
}

func (s *server) authorizationURL(a *authority, b *begun) (string, error) {
	u, err := url.Parse(a.AuthorizationEndpoint)
	if err != nil { // cannot happen: the URL was checked
		return "", fmt.Errorf("the authorization endpoint of %s is not a web address", a.Issuer)
	}
	q := u.Query()
	q.Set("response_type", "code")
	q.Set("client_id", b.Login.Client.ID)
	q.Set("redirect_uri", b.Redirect)
	q.Set("state", b.State)
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(b.Verifier))
	q.Set("code_challenge_method", "S256")
	s.target(q, a.resource)
	if scopes := b.Login.Token.Scopes; len(scopes) > 0 {
		q.Set("scope", strings.Join(scopes, " "))
	}
	u.RawQuery, u.Fragment, u.RawFragment = q.Encode(), "", ""
	return u.String(), nil
}

// check verifies that the reply belongs to our request and comes from the right
// authorization server.
func (r reply) check(b *begun) error {
	if !r.codeOnly && subtle.ConstantTimeCompare([]byte(r.state), []byte(b.State)) != 1 {
		return errors.New(
			"the browser returned the answer to another login (its state does not match); nothing was sent")
	}
	switch {
	case r.issuer != "" && !isIssuer(b.Login.Issuer, r.issuer) && !b.Unnamed:
		return fmt.Errorf("the answer comes from the authorization server %s instead of %s; nothing was sent",
			text.Quote(r.issuer), b.Login.Issuer)
	case r.issuer == "" && b.SendsIssuer && r.codeOnly:
		return fmt.Errorf(
			"a code alone does not prove that it is from %s; paste the whole URL from the browser's address bar",
			b.Login.Issuer)
	case r.issuer == "" && b.SendsIssuer:
		return fmt.Errorf("the answer lacks the issuer %s, which that server promises to send; nothing was sent",
			b.Login.Issuer)
	case r.err != "" && r.description != "":
		return fmt.Errorf("%w: %s (%s)", ErrRefused, text.Quote(r.description), text.Quote(r.err))
	case r.err != "":
		return fmt.Errorf("%w: %s", ErrRefused, text.Quote(r.err))
	case r.code == "":
		return errors.New("the browser returned no code")
	}
	return nil
}

// await sends the user to the URL and waits for the first answer: from the
// browser, or pasted.
func (b *callback) await(ctx context.Context, address string, o LoginOptions) (reply, error) {
	asking, stop := context.WithCancel(ctx)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer stop()
	type result struct {
		text string
		err  error
	}
	var pasted chan result // a nil channel blocks forever
	if o.Browse != nil {
		if err := o.Browse(ctx, address); err != nil && o.Paste == nil && b.server == nil {
			return reply{}, err
		}
	}
	if o.Paste != nil {
		pasted = make(chan result, 1)
		asked.Go(func() {
			text, err := o.Paste(asking, address)
			pasted <- result{text, err}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return reply{}, context.Cause(ctx)
		case r := <-b.replies:
			return r, nil
		case p := <-pasted:
			if p.err == nil && strings.TrimSpace(p.text) != "" {
				return readPasted(p.text)
			}
			if b.server == nil {
				return reply{}, fmt.Errorf("no URL was pasted, and the browser cannot connect back to %s", b.redirect)
			}
			pasted = nil
		}
	}
}
