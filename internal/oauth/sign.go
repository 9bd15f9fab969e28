package oauth

import (
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
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

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

// takeNonce returns the nonce of a response; "" if there is none or it is unusable.
func takeNonce(h http.Header) string {
	if nonce := h.Get("DPoP-Nonce"); len(nonce) <= 1<<10 && isToken(nonce) {
		return nonce
	}
	return ""
}

// isToken reports whether s is valid as a token in a header.
func isToken(s string) bool {
	return s != "" && len(s) <= 64<<10 && strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e }) < 0
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
