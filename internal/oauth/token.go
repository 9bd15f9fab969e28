package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

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

// isToken reports whether s is valid as a token in a header.
func isToken(s string) bool {
	return s != "" && len(s) <= 64<<10 && strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e }) < 0
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

// assertionTime is how long a signed assertion is valid.
const assertionTime = 5 * time.Minute

// signAssertion returns the assertion that authenticates a client (RFC 7523 section 3):
// a token about itself for the issuer, signed with its private key.
func signAssertion(key, client, audience string, now time.Time) (string, error) {
	private, err := readKey(key)
	if err != nil {
		return "", err
	}
	alg, err := algorithmOf(private)
	if err != nil {
		return "", err
	}
	token, err := signToken(jose.SigningKey{Algorithm: alg, Key: private},
		(&jose.SignerOptions{}).WithType("JWT"), map[string]any{
			"iss": client, "sub": client, "aud": audience, "jti": rand.Text(),
			"iat": now.Unix(), "exp": now.Add(assertionTime).Unix(),
		})
	if err != nil {
		return "", fmt.Errorf("signing with oauth.privateKey: %w", err)
	}
	return token, nil
}

// signToken returns a JSON Web Token in its compact form (RFC 7515 section 7.1).
func signToken(key jose.SigningKey, options *jose.SignerOptions, claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	token, err := signer.Sign(body)
	if err != nil {
		return "", err
	}
	return token.CompactSerialize()
}

// readKey reads a private key in PEM: PKCS #8, PKCS #1 or SEC 1. A key from a
// variable may have \n instead of line breaks. Errors never contain parts of
// the key.
func readKey(text string) (any, error) {
	block, _ := pem.Decode([]byte(strings.ReplaceAll(text, `\n`, "\n")))
	if block == nil {
		return nil, errors.New("oauth.privateKey is not a private key in PEM format")
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, fmt.Errorf("oauth.privateKey is a %q, which is not supported; use an unencrypted PKCS #8 key",
		block.Type)
}

// algorithmOf returns the algorithm of a key (RFC 7518, RFC 8037).
func algorithmOf(key any) (jose.SignatureAlgorithm, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, nil
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return jose.ES256, nil
		case 384:
			return jose.ES384, nil
		}
	case ed25519.PrivateKey:
		return jose.EdDSA, nil
	}
	return "", errors.New("the key type of oauth.privateKey is not supported; use RSA, P-256, P-384 or Ed25519")
}

// A token may be bound to a key that only its owner has (DPoP, RFC 9449): every request with
// the token, and every request for one, carries a proof in its DPoP header. A proof is signed
// with the key and holds for one request.

// proofAlgorithm is the only algorithm with which proofs are signed. Authorization servers
// that support DPoP support it in practice.
const proofAlgorithm = "ES256"

// noncedError is the error code for a proof that lacks the server's nonce (RFC 9449 sections 8 and
// 9).
const noncedError = "use_dpop_nonce"

// addProof adds a proof to a request (RFC 9449 section 4.2). token is the access token that the
// request carries, and nonce what the server demanded; either may be "".
func addProof(r *http.Request, keyPEM, token, nonce string, now time.Time) error {
	key, err := readProofKey(keyPEM)
	if err != nil {
		return err
	}
	target := url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath}
	claims := map[string]any{"jti": rand.Text(), "htm": r.Method, "htu": target.String(), "iat": now.Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	proof, err := signToken(jose.SigningKey{Algorithm: proofAlgorithm, Key: key},
		(&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"), claims)
	if err != nil {
		return fmt.Errorf("signing a DPoP proof: %w", err)
	}
	r.Header.Set("DPoP", proof)
	return nil
}

func readProofKey(keyPEM string) (*ecdsa.PrivateKey, error) {
	private, err := readKey(keyPEM)
	key, ok := private.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, errDamaged
	}
	return key, nil
}

// errDamaged reports a file that toolreg did not write.
var errDamaged = errors.New("the stored login cannot be read")
