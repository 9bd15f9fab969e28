package oauth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// renewalGrace is how long a renewal continues after its run was canceled: the login would be lost
// if a refresh token were used and its replacement not received.
const renewalGrace = 2 * time.Second

// withGrace returns a context that outlives ctx by renewalGrace.
func withGrace(ctx context.Context) (context.Context, func()) {
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*webTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(renewalGrace, cancel) })
	return long, func() { stop(); cancel() }
}

// renew replaces the token stale, "" for none, by another one. If several
// processes renew at once, the first contacts the authorization server and the
// others read what it saved. The caller holds c.mu; afterwards c.record has the
// new token.
func (c *Client) renew(ctx context.Context, stale string, ch challenge) error {
	w := c.web()
	defer w.close()
	var outcome error
	got := false
	step := func(r *record) (*record, error) {
		if r != nil && r.Token.Access != stale && r.Token.fresh(c.now()) {
			c.record, got = r, true
			return nil, nil
		}
		long, done := withGrace(ctx)
		defer done()
		next, err := c.next(long, w, r, ch)
		if next != nil {
			c.record, got = next, err == nil
		}
		outcome = err
		return next, nil
	}
	err := c.update(ctx, step)
	if err != nil && !got && outcome == nil && c.unattended() && errors.Is(err, state.ErrUnavailable) {
		_, err = step(nil) // without a folder, which this login does not need
	}
	switch {
	case outcome != nil:
		return outcome
	case got && err != nil:
		c.warn(fmt.Errorf("saving the token of server %q: %w", c.name, err))
		return nil
	case err != nil:
		return fmt.Errorf("renewing its token: %w", err)
	}
	return nil
}

// next returns the record after a renewal. If it returns an error together with
// a record, that record must still be stored.
func (c *Client) next(ctx context.Context, w *web, r *record, ch challenge) (*record, error) {
	if c.unattended() {
		return c.obtain(ctx, w, r, ch)
	}
	if r == nil {
		return nil, c.needLogin("it requires a login")
	}
	if r.Token.Refresh == "" {
		return nil, c.needLogin("your login has expired")
	}
	form := url.Values{"grant_type": {grantRefresh}, "refresh_token": {r.Token.Refresh}}
	c.target(form, r.Resource)
	t, err := w.tokens(ctx, r.TokenURL, c.credentials(r.Client, r.Issuer, r.ProofKey), form, c.now())
	refused, isRefused := errors.AsType[*tokenError](err)
	switch {
	case isRefused && slices.Contains([]string{"invalid_grant", "invalid_client",
		"unauthorized_client", "access_denied", "invalid_scope"}, refused.code): // permanently
		r.Token = token{Scopes: r.Token.Scopes} // so that it is not used again
		r.Client.Doubted = true
		return r, c.needLogin("your login has expired")
	case isRefused && !refused.mayPass(): // many servers refuse an expired refresh token with their own error code, or with none
		return nil, c.needLogin(fmt.Sprintf("its token cannot be renewed at %s (%s)", r.Issuer, refused))
	case err != nil:
		return nil, fmt.Errorf("renewing its token at %s: %w", r.Issuer, err)
	}
	t.Refresh = cmp.Or(t.Refresh, r.Token.Refresh)
	if len(t.Scopes) == 0 {
		t.Scopes = r.Token.Scopes
	}
	r.Token, r.Client.Doubted = t, false
	return r, nil
}

// target adds the resource of the token (RFC 8707); "" for none.
func (s *server) target(form url.Values, resource string) {
	if resource != "" {
		form.Set("resource", resource)
	}
	for _, a := range s.config.Audiences {
		form.Add("audience", a)
	}
}

// obtain gets a token without the user. If the secrets are refused, and there are others now, it tries those.
func (c *Client) obtain(ctx context.Context, w *web, r *record, ch challenge) (*record, error) {
	used := c.secrets.Load()
	next, err := c.obtainWith(ctx, w, r, ch, used)
	refused, isRefused := errors.AsType[*tokenError](err)
	if !isRefused || refused.mayPass() {
		return next, err
	}
	now, isOther, readErr := c.secrets.Other(ctx, used)
	if readErr != nil {
		return nil, fmt.Errorf("%w, and its secrets cannot be read again: %w", err, readErr)
	}
	if !isOther {
		return nil, err
	}
	return c.obtainWith(ctx, w, r, ch, now)
}

func (c *Client) obtainWith(ctx context.Context, w *web, r *record, ch challenge, has secrets) (*record, error) {
	if c.config.ClientID == "" {
		return nil, fmt.Errorf("oauth.grant %s needs oauth.clientId", c.config.Grant)
	}
	a, err := c.discover(ctx, w, ch)
	if err != nil {
		return nil, err
	}
	if err := c.checkIssuer(r, a.Issuer); err != nil {
		return nil, err
	}
	next := &record{
		Server:     c.url,
		Resource:   a.resource,
		Issuer:     a.Issuer,
		TokenURL:   a.TokenEndpoint,
		RevokeURL:  c.revocation(a),
		LoggedInAt: c.now().Unix(),
	}
	next.Client = identity{ID: c.config.ClientID,
		Method: method(c.config.ClientSecret, c.config.PrivateKey, a.AuthMethods)}
	before := ""
	if r != nil {
		before = r.ProofKey
	}
	if next.ProofKey, err = c.proofKey(a, before); err != nil {
		return nil, err
	}
	who := c.credentials(next.Client, a.Issuer, next.ProofKey)
	who.Secret, who.privateKey = has.client, has.privateKey
	form := url.Values{"grant_type": {grantCredentials}}
	c.target(form, a.resource)
	if scopes := cleanScopes(c.config.Scopes); len(scopes) > 0 { // never those that the server names
		form.Set("scope", strings.Join(scopes, " "))
	}
	if c.config.Grant == settings.GrantJWTBearer {
		assertion, err := c.assertion(ctx, w, a, has, form.Get("scope"))
		if err != nil {
			return nil, err
		}
		form.Set("grant_type", grantJWTBearer)
		form.Set("assertion", assertion)
	} else if who.Method == methodNone {
		return nil, errors.New("oauth.grant client_credentials needs oauth.clientSecret or oauth.privateKey")
	}
	if next.Token, err = w.tokens(ctx, a.TokenEndpoint, who, form, c.now()); err != nil {
		return nil, fmt.Errorf("asking %s for a token: %w", a.Issuer, err)
	}
	next.Token.Refresh = "" // the next token will be obtained with another grant
	return next, nil
}

// assertion returns the assertion for the user or the workload: the one of the
// settings, or one that their identity provider issues for an identity token
// (MCP extension enterprise-managed authorization).
func (s *server) assertion(ctx context.Context, w *web, a *authority, has secrets, scope string) (string, error) {
	o := s.config
	switch {
	case has.assertion != "":
		return has.assertion, nil
	case has.idToken == "" || o.IDPIssuer == "":
		return "", errors.New("oauth.grant jwt_bearer needs oauth.assertion, or oauth.idToken and oauth.idpIssuer")
	}
	var idp authority
	if err := w.authority(ctx, []string{o.IDPIssuer}, &idp); err != nil {
		return "", err
	}
	id := cmp.Or(o.IDPClientID, o.ClientID)
	if err := w.checkURL(idp.TokenEndpoint); err != nil {
		return "", fmt.Errorf("asking the identity provider %s for an assertion: %w", o.IDPIssuer, err)
	}
	got, err := oauthex.ExchangeToken(ctx, idp.TokenEndpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, Audience: a.Issuer, Resource: a.resource,
		Scope: strings.Fields(scope), SubjectToken: has.idToken, SubjectTokenType: oauthex.TokenTypeIDToken,
	}, &oauthex.ClientCredentials{ClientID: id}, w.client)
	if err != nil {
		return "", fmt.Errorf("asking the identity provider %s for an assertion: %w",
			o.IDPIssuer, w.withoutAnswer(ctx, err))
	}
	return got.AccessToken, nil
}

// scopes returns the scopes to request for a user: those of the command line, otherwise
// those of the settings, of the server's challenge, or of its metadata (MCP
// 2025-11-25, scope selection strategy). If the server requires more, the
// scopes of the earlier login are kept.
func (s *server) scopes(a *authority, old *record, ch challenge, asked []string) []string {
	var out []string
	for _, s := range [][]string{asked, s.config.Scopes, ch.scopes, a.scopes} {
		if len(s) > 0 {
			out = slices.Clone(s)
			break
		}
	}
	if old != nil && old.Issuer == a.Issuer && len(asked) == 0 &&
		(len(old.Wanted) > 0 || ch.err == "insufficient_scope") {
		out = slices.Concat(old.Token.Scopes, old.Wanted, ch.scopes, out)
	}
	// Request a refresh token if the server supports that scope (SEP-2207).
	if len(asked) == 0 && slices.Contains(a.Scopes, "offline_access") {
		out = append(out, "offline_access")
	}
	return cleanScopes(out)
}

// proofKey returns the key for a login: that of the earlier login (before; "" for none), or a new
// one. It returns "" if tokens are not bound.
func (s *server) proofKey(a *authority, before string) (string, error) {
	supported := slices.Contains(a.ProofAlgorithms, proofAlgorithm)
	switch o := s.config; {
	case o.DPoP == settings.DPoPRequire && !supported && o.TokenURL == "":
		return "", fmt.Errorf("the authorization server %s does not advertise DPoP with %s, which oauth.dpop requires",
			a.Issuer, proofAlgorithm)
	case o.DPoP == settings.DPoPRequire:
	case o.DPoP == settings.DPoPOff, !supported, o.TokenParamName != "":
		return "", nil
	}
	if before != "" {
		return before, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
}

// ErrRefused reports that the user or the authorization server refused the
// login.
var ErrRefused = errors.New("the login was refused")

// unknownIssuerError reports that a secret of the settings would be sent to an
// authorization server that only the MCP server specified.
type unknownIssuerError struct{ server, issuer, setting string }

func (e *unknownIssuerError) Error() string {
	return fmt.Sprintf("it names the authorization server %s, which would get %s; if that is right, set oauth.issuer to it, or run toolreg servers login %s at a terminal",
		e.issuer, e.setting, text.ShellWord(e.server))
}

func (e *unknownIssuerError) Is(target error) bool { return target == registry.ErrNeedsConfirmation }

// checkIssuer refuses to send secrets of the settings to an issuer that neither
// the settings nor the user chose, because the MCP server specifies it. A
// stored login implies the user's consent to its issuer.
func (c *Client) checkIssuer(old *record, issuer string) error {
	o := c.config
	switch {
	case o.ClientSecret+o.PrivateKey+o.Assertion+o.IDToken == "",
		o.Issuer != "", issuer == c.agreed, old != nil && old.Issuer == issuer:
		return nil
	case old != nil:
		return fmt.Errorf("it names another authorization server (%s) than before (%s), which would receive the client's secret; if that is right, set oauth.issuer",
			issuer, old.Issuer)
	case c.disclosing() && o.ClientSecret == "":
		return &unknownIssuerError{c.name, issuer, "oauth.assertion"}
	case c.disclosing():
		return &unknownIssuerError{c.name, issuer, "oauth.clientSecret"}
	}
	return nil
}

// consent asks the user whether an issuer may receive a secret.
func (c *Client) consent(ctx context.Context, old *record, issuer string,
	agree func(ctx context.Context, issuer, setting string) (bool, error)) error {
	err := c.checkIssuer(old, issuer)
	unknown, ok := errors.AsType[*unknownIssuerError](err)
	if !ok || agree == nil {
		return err
	}
	yes, err := agree(ctx, issuer, unknown.setting)
	if err == nil && !yes {
		err = ErrRefused
	}
	if err == nil {
		c.agreed = issuer
	}
	return err
}

// revocation returns the endpoint that revokes tokens and requires the secret;
// "" if the settings choose the token endpoint but the MCP server chooses the
// others.
func (s *server) revocation(a *authority) string {
	if s.config.TokenURL != "" && s.config.Issuer == "" && s.config.ClientSecret != "" {
		return ""
	}
	return a.RevocationEndpoint
}
