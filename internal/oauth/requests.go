package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Token returns the access token for the next request to the server, or "" if
// the user is not logged in. It first renews an expired token. If that is not
// possible, or the user is not logged in to an API, the error wraps
// registry.ErrNeedsLogin.
func (c *Client) Token(ctx context.Context) (string, error) {
	if err := c.checkSecure(); err != nil {
		if c.isAPI {
			return "", err
		}
		return "", nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loadRecord(ctx)
	if c.isAPI && !c.loggedIn() {
		c.loaded = false // the user may have logged in meanwhile
		c.loadRecord(ctx)
	}
	c.follow(ctx)
	switch {
	case c.loggedIn():
	case !c.isAPI:
		return "", nil
	case !c.unattended():
		return "", c.needLogin("it requires a login")
	default:
		if err := c.renew(ctx, "", challenge{}); err != nil {
			return "", err
		}
	}
	if !c.record.Token.fresh(c.now()) {
		if err := c.renew(ctx, c.record.Token.Access, challenge{}); err != nil {
			return "", err
		}
	}
	return c.record.Token.Access, nil
}

// followEvery is how often a login in use is compared with the stored one.
const followEvery = time.Second

// follow notices that the user has logged out, or in again, with another process.
func (c *Client) follow(ctx context.Context) {
	if !c.loggedIn() || c.unattended() || c.now().Sub(c.followed) < followEvery {
		return
	}
	c.followed = c.now()
	if r, err := c.readRecord(ctx); err == nil && (r == nil || r.LoggedInAt != c.record.LoggedInAt) {
		c.record = r
	}
}

// Registered reports whether the login that was used belongs to a client that toolreg registered
// at the authorization server (dynamic client registration).
func (c *Client) Registered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loggedIn() && c.record.Client.Registered
}

// Account returns what identifies the login with which requests are made, for caches of
// their results. It changes when a user logs in again.
func (c *Client) Account(ctx context.Context) (string, error) {
	r, err := c.readRecord(ctx)
	if err != nil || r == nil || c.unattended() {
		return c.key(), err
	}
	return fmt.Sprintf("%s %d", c.key(), r.LoggedInAt), nil
}

// Sign adds a token that Token returned to a request for the server, with a proof if the
// token is bound to a key.
func (c *Client) Sign(r *http.Request, token string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record == nil || !c.record.Token.Bound {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	r.Header.Set("Authorization", "DPoP "+token)
	return addProof(r, c.record.ProofKey, token, c.nonce, c.now())
}

// Received must be called with the status and the header of each response of the server.
// sent is the token of the request ("" for none). If it returns again, the request was
// refused and may be sent again with another token or proof. If the user has to log in, the
// error wraps registry.ErrNeedsLogin. If it returns false and nil, no login would help.
func (c *Client) Received(ctx context.Context, sent string, status int, header http.Header) (again bool, err error) {
	nonce := takeNonce(header)
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	if nonce == "" && !refused {
		return false, nil
	}
	ch := readChallenge(header.Values("WWW-Authenticate"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if nonce != "" {
		c.nonce = nonce
	}
	if !refused {
		return false, nil
	}
	c.loadRecord(ctx)
	if status == 401 && ch.err == noncedError && c.record != nil && c.record.Token.Bound {
		return nonce != "", nil
	}
	if status == 403 && ch.err != "insufficient_scope" || status == 401 && ch.given && !ch.token && sent == "" {
		return false, nil
	}
	c.challenge = ch
	if err := c.checkSecure(); err != nil {
		return false, err
	}
	if c.another(ctx, sent) {
		return true, nil
	}
	lacksScope := sent != "" && ch.err == "insufficient_scope" // some servers say so with 401
	switch {
	case lacksScope && !c.unattended():
		return false, c.needMore(ctx, ch)
	case lacksScope && (sent == c.renewed || !c.misses(c.config.Scopes)):
		return false, c.needScope(ch)
	case sent != "" && sent == c.renewed:
		if c.unattended() {
			return false, errors.New("it refuses the token that was just issued for it")
		}
		return false, c.needLogin("it refuses the token that was just renewed")
	case c.record == nil && !c.unattended():
		return false, c.needLogin("it requires a login")
	}
	if err := c.renew(ctx, sent, ch); err != nil {
		return false, err
	}
	c.renewed = c.record.Token.Access
	return true, nil
}

// another reports whether there is a token other than the refused one: another request
// has renewed it, or the user has logged in meanwhile.
func (c *Client) another(ctx context.Context, sent string) bool {
	usable := func(r *record) bool { return r != nil && r.Token.Access != sent && r.Token.fresh(c.now()) }
	if stored, err := c.readRecord(ctx); err == nil && usable(stored) {
		c.record = stored
	}
	return usable(c.record)
}

func (c *Client) misses(scopes []string) bool {
	return c.record != nil &&
		slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(c.record.Token.Scopes, s) })
}

// needScope returns the error for a login without a user that lacks a scope. The server must not
// decide what a program's credentials are used for, so only the settings can add scopes.
func (s *server) needScope(ch challenge) error {
	if len(ch.scopes) == 0 {
		return errors.New(
			"it requires more permissions than the login has; oauth.scopes in its settings says which to request")
	}
	return fmt.Errorf("it requires the scope %s; if this login may have it, add it to oauth.scopes in its settings",
		strings.Join(ch.scopes, " "))
}

// needMore stores the missing scopes for the next login.
func (c *Client) needMore(ctx context.Context, ch challenge) error {
	if c.record != nil && len(ch.scopes) > 0 {
		err := c.update(ctx, func(r *record) (*record, error) {
			if r != nil {
				r.Wanted = cleanScopes(slices.Concat(r.Wanted, ch.scopes)) // earlier requests may have lacked others
				c.record = r
			}
			return r, nil
		})
		if err != nil {
			c.warn(fmt.Errorf("saving the scopes that server %q requires: %w", c.name, err))
		}
	}
	reason := "it requires more permissions than your login has"
	if len(ch.scopes) > 0 {
		reason += fmt.Sprintf(" (scope %s)", strings.Join(ch.scopes, " "))
	}
	return c.needLogin(reason)
}

// WantsMore reports whether, since the login, the server has refused a request
// for lack of scopes.
func (c *Client) WantsMore() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.challenge.err == "insufficient_scope"
}

// Probe uses the Client without its tokens, to learn how the server responds to
// clients that are not logged in.
type Probe struct{ Client *Client }

// Token returns no token.
func (p Probe) Token(context.Context) (string, error) { return "", nil }

// Sign is not called, because there is no token.
func (p Probe) Sign(*http.Request, string) error { return nil }

// Received stores the server's challenge for a later [Client.Login].
func (p Probe) Received(_ context.Context, _ string, status int, header http.Header) (bool, error) {
	ch := readChallenge(header.Values("WWW-Authenticate"))
	if status != 401 || ch.given && !ch.token {
		return false, nil
	}
	p.Client.mu.Lock()
	defer p.Client.mu.Unlock()
	p.Client.challenge = ch
	return false, p.Client.needLogin("it requires a login")
}
