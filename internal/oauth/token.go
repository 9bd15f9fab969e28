package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings"
)

// Methods of client authentication at the token endpoint (RFC 7591 section 2,
// RFC 7523).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodJWT   = "private_key_jwt"
)

// Grant types.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantCredentials = "client_credentials"
	grantJWTBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

type credentials struct {
	identity
	privateKey string // PEM
	proofKey   string // PEM; tokens are bound to it if the server supports that
	mustProve  bool   // a token that is not bound is an error
	audience   string // audience of assertions: the issuer
}

// post sends a form to an endpoint of the authorization server with client
// authentication, and with a proof if there is a key for it.
func (w *web) post(ctx context.Context, endpoint string, who credentials,
	form url.Values, nonce string, now time.Time) (int, []byte, error) {
	if err := w.checkURL(endpoint); err != nil {
		return 0, nil, err
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	switch who.Method {
	case methodBasic:
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret)) // RFC 6749 section 2.3.1
	case methodJWT:
		assertion, err := signAssertion(who.privateKey, who.ID, who.audience, now)
		if err != nil {
			return 0, nil, err
		}
		form.Set("client_id", who.ID)
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	default:
		form.Set("client_id", who.ID)
		if who.Secret != "" {
			form.Set("client_secret", who.Secret)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, errors.New("its endpoint is not a web address")
	}
	r.Header = header
	if who.proofKey != "" {
		if err := addProof(r, who.proofKey, "", nonce, now); err != nil {
			return 0, nil, err
		}
	}
	return w.do(r)
}

// ask sends a request to a token endpoint (RFC 6749 section 5). If the endpoint returns an error, it
// is a *tokenError.
func (w *web) ask(ctx context.Context, endpoint string,
	who credentials, form url.Values, now time.Time) (document, error) {
	status, data, err := w.post(ctx, endpoint, who, form, "", now)
	if err == nil && who.proofKey != "" && w.nonce != "" && document(data).text("error") == noncedError {
		status, data, err = w.post(ctx, endpoint, who, form, w.nonce, now)
	}
	if err != nil {
		return nil, err
	}
	a, err := answered(status, data)
	refresh := a.text("refresh_token")
	switch {
	case err != nil:
		return nil, err
	case !isToken(a.text("access_token")):
		return nil, errors.New("its answer has no usable access token")
	case refresh != "" && !isToken(refresh):
		return nil, errors.New("its answer has no usable refresh token")
	}
	return a, nil
}

// tokens requests an access token for the MCP server.
func (w *web) tokens(ctx context.Context, endpoint string,
	who credentials, form url.Values, now time.Time) (token, error) {
	a, err := w.ask(ctx, endpoint, who, form, now)
	if err != nil {
		return token{}, err
	}
	kind := a.text("token_type")
	bound := strings.EqualFold(kind, "dpop") && who.proofKey != ""
	switch {
	case !bound && kind != "" && !strings.EqualFold(kind, "bearer"):
		return token{}, fmt.Errorf("it issued a token of type %q, which is not supported", kind)
	case !bound && who.mustProve:
		return token{}, errors.New("it issued a bearer token, but oauth.dpop requires one that is bound to a key")
	}
	t := token{
		Access:  a.text("access_token"),
		Refresh: a.text("refresh_token"),
		Given:   now.Unix(),
		Scopes:  strings.Fields(form.Get("scope")),
		Bound:   bound,
	}
	if !jsonx.IsNull(jsonx.Get(json.RawMessage(a), "scope")) {
		t.Scopes = cleanScopes(a.words("scope"))
	}
	if seconds := a.number("expires_in"); seconds > 0 {
		const most = 10 * 365 * 24 * 3600
		t.Expires = now.Unix() + int64(min(max(seconds, 1), most))
	}
	return t, nil
}

// method chooses how the client authenticates, from the methods that the server
// supports. Without a list it uses the default of RFC 8414 section 2.
func method(secret, privateKey string, takes []string) string {
	switch {
	case privateKey != "":
		return methodJWT
	case secret == "":
		return methodNone
	case slices.Contains(takes, methodPost) && !slices.Contains(takes, methodBasic):
		return methodPost
	}
	return methodBasic
}

// credentials adds the secrets of the settings and the key of the login to an identity.
func (s *server) credentials(id identity, issuer, proofKey string) credentials {
	who := credentials{identity: id, audience: issuer, proofKey: proofKey,
		mustProve: s.config.DPoP == settings.DPoPRequire}
	if !id.Registered {
		who.Secret, who.privateKey = s.config.ClientSecret, s.config.PrivateKey
	}
	return who
}
