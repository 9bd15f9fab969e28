package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolreg/toolreg/internal/settings"
)

// A token may be bound to a key that only its owner has (DPoP, RFC 9449): every request with
// the token, and every request for one, carries a proof in its DPoP header. A proof is signed
// with the key and holds for one request.

// proofAlgorithm is the only algorithm with which proofs are signed. Authorization servers
// that support DPoP support it in practice.
const proofAlgorithm = "ES256"

// noncedError is the error code of a request whose proof lacks the nonce of the server
// (RFC 9449 sections 8 and 9).
const noncedError = "use_dpop_nonce"

// proofKey returns the key for a login: that of the login before, "" for none, or a new one.
// It returns "" if tokens are not bound.
func (c *Client) proofKey(a *authority, before string) (string, error) {
	supported := slices.Contains(a.ProofAlgorithms, proofAlgorithm)
	switch o := c.config; {
	case o.DPoP == settings.DPoPRequire && !supported && o.TokenURL == "":
		return "", fmt.Errorf("the authorization server %s does not advertise DPoP with %s, which oauth.dpop requires", a.Issuer, proofAlgorithm)
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

// prove adds a proof to a request (RFC 9449 section 4.2). token is the access token that the
// request carries, and nonce what the server demanded; either may be "".
func prove(r *http.Request, keyPEM, token, nonce string, now time.Time) error {
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
	proof, err := signed(jose.SigningKey{Algorithm: proofAlgorithm, Key: key}, (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"), claims)
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

// takeNonce returns the nonce of a response, "" for none or one that is unusable.
func takeNonce(h http.Header) string {
	nonce := h.Get("DPoP-Nonce")
	if len(nonce) > 1<<10 || strings.ContainsFunc(nonce, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return ""
	}
	return nonce
}
