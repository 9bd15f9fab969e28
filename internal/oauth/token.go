package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
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

// credentials are an identity with its secrets.
type credentials struct {
	identity
	privateKey string // PEM
	proofKey   string // PEM; tokens are bound to it if the server supports that
	mustProve  bool   // a token that is not bound is an error
	audience   string // audience of assertions: the issuer
}

// tokenError is an error response of a token endpoint (RFC 6749 section 5.2).
// Its description is dropped, because it may repeat what was sent.
type tokenError struct {
	status int
	code   string
}

func (e *tokenError) Error() string {
	if e.code == "" {
		return (&statusError{e.status}).Error()
	}
	return fmt.Sprintf("it returned %q", e.code)
}

// isRefused reports whether a token endpoint refused permanently, so that it is
// useless to try again.
func isRefused(err error) bool {
	e, ok := errors.AsType[*tokenError](err)
	return ok && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client", "access_denied", "invalid_scope"}, e.code)
}

// post sends a form to an endpoint of the authorization server with client
// authentication, and with a proof if there is a key for it.
func (w *web) post(ctx context.Context, endpoint string, who credentials, form url.Values, nonce string, now time.Time) (int, []byte, error) {
	if err := w.check(endpoint); err != nil {
		return 0, nil, err
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	switch who.Method {
	case methodBasic:
		r := http.Request{Header: header}
		r.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret)) // RFC 6749 section 2.3.1
	case methodJWT:
		assertion, err := sign(who.privateKey, who.ID, who.audience, now)
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
		if err := prove(r, who.proofKey, "", nonce, now); err != nil {
			return 0, nil, err
		}
	}
	return w.do(r)
}

// answer is a response of a token endpoint (RFC 6749 section 5).
type answer struct {
	AccessToken  string          `json:"access_token"`
	TokenType    string          `json:"token_type"`
	RefreshToken string          `json:"refresh_token"`
	ExpiresIn    json.RawMessage `json:"expires_in"`
	Scope        *scopes         `json:"scope"`
	Error        string          `json:"error"`
}

// scopes are the words of a scope, or of a list of them, which some servers send.
type scopes []string

// UnmarshalJSON implements [json.Unmarshaler]. A scope of another type says nothing.
func (s *scopes) UnmarshalJSON(data []byte) error {
	list, ok := jsonx.Elements(data)
	if !ok {
		list = []json.RawMessage{data}
	}
	for _, raw := range list {
		words, _ := jsonx.Text(raw)
		*s = append(*s, strings.Fields(words)...)
	}
	return nil
}

// ask sends a request to a token endpoint. If the endpoint returns an error, it
// is a *tokenError.
func (w *web) ask(ctx context.Context, endpoint string, who credentials, form url.Values, now time.Time) (answer, error) {
	var a answer
	status, data, err := w.post(ctx, endpoint, who, form, "", now)
	if err == nil && who.proofKey != "" && w.nonce != "" && decode(data, &a) == nil && a.Error == noncedError {
		a = answer{}
		status, data, err = w.post(ctx, endpoint, who, form, w.nonce, now)
	}
	if err != nil {
		return a, err
	}
	err = decode(data, &a)
	switch {
	case a.Error != "": // some servers return errors with status 200
		return a, &tokenError{status, a.Error}
	case status != http.StatusOK && status != http.StatusCreated:
		return a, &tokenError{status: status}
	case err != nil:
		return a, err
	case !isToken(a.AccessToken):
		return a, errors.New("its answer has no usable access token")
	case a.RefreshToken != "" && !isToken(a.RefreshToken):
		return a, errors.New("its answer has no usable refresh token")
	}
	return a, nil
}

// isToken reports whether s is valid as a token in a header.
func isToken(s string) bool {
	return s != "" && len(s) <= 64<<10 && strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e }) < 0
}

// tokens requests an access token for the MCP server.
func (w *web) tokens(ctx context.Context, endpoint string, who credentials, form url.Values, now time.Time) (token, error) {
	a, err := w.ask(ctx, endpoint, who, form, now)
	if err != nil {
		return token{}, err
	}
	bound := strings.EqualFold(a.TokenType, "dpop") && who.proofKey != ""
	switch {
	case !bound && a.TokenType != "" && !strings.EqualFold(a.TokenType, "bearer"):
		return token{}, fmt.Errorf("it issued a token of type %q, which is not supported", a.TokenType)
	case !bound && who.mustProve:
		return token{}, errors.New("it issued a bearer token, but oauth.dpop requires one that is bound to a key")
	}
	t := token{Access: a.AccessToken, Refresh: a.RefreshToken, Given: now.Unix(), Scopes: strings.Fields(form.Get("scope")), Bound: bound}
	if a.Scope != nil {
		t.Scopes = cleanScopes(*a.Scope)
	}
	if seconds := lifetime(a.ExpiresIn); seconds > 0 {
		t.Expires = now.Unix() + seconds
	}
	return t, nil
}

// lifetime reads expires_in, which some servers send as a string; 0 means unknown.
func lifetime(raw json.RawMessage) int64 {
	seconds, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	const most = 10 * 365 * 24 * 3600
	return int64(min(max(seconds, 1), most))
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
