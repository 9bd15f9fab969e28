package mcptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// signer signs access tokens, with another library than the one that verifies them.
type signer struct {
	method jwt.SigningMethod
	id     string
	key    crypto.Signer
	public map[string]string // as a JSON Web Key
}

// newSigner makes a key for an algorithm: RS256, ES256 or EdDSA.
func newSigner(algorithm string) (*signer, error) {
	s := &signer{method: jwt.GetSigningMethod(algorithm), id: rand.Text()}
	encode := base64.RawURLEncoding.EncodeToString
	switch algorithm {
	case "RS256":
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		s.key, s.public = key, map[string]string{"kty": "RSA", "n": encode(key.N.Bytes()), "e": "AQAB"}
	case "ES256":
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		point, err := key.PublicKey.Bytes() // 4, then x and y with 32 bytes each
		if err != nil {
			return nil, err
		}
		s.key, s.public = key,
			map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
	default:
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		s.key, s.public = key, map[string]string{"kty": "OKP", "crv": "Ed25519", "x": encode(public)}
	}
	s.public["kid"], s.public["use"], s.public["alg"] = s.id, "sig", algorithm
	return s, nil
}

// Rotate replaces the key that signs access tokens; the one before is not published any more.
func (a *Authority) Rotate() error {
	s, err := newSigner(a.o.jwt)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.signer = s
	return nil
}

// Token returns an access token of a person with more claims, which may replace those that it
// would have. It lives for an hour. a.mu is not held.
func (a *Authority) Token(resource string, scopes []string, more map[string]any) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sign(resource, scopes, time.Hour, more)
}

// sign makes an access token (RFC 9068). a.mu is held.
func (a *Authority) sign(resource string, scopes []string, ttl time.Duration, more map[string]any) (string, error) {
	claims := jwt.MapClaims{
		"iss": a.Issuer, "aud": resource, "sub": a.o.person, "exp": a.Now().Add(ttl).Unix(),
		"iat": a.Now().Unix(), "jti": rand.Text(), "scope": strings.Join(scopes, " "),
	}
	if a.o.groups != "" {
		claims["groups"] = strings.Fields(a.o.groups)
	}
	maps.Copy(claims, more)
	t := jwt.NewWithClaims(a.signer.method, claims)
	t.Header["kid"], t.Header["typ"] = a.signer.id, "at+jwt"
	return t.SignedString(a.signer.key)
}

// proof checks the proof of a request (RFC 9449 section 4.3), with another library than the
// one that made it, and returns the thumbprint of its key. It returns "" if no proof is needed.
// The error is the code to answer with. token is the access token of the request.
func (a *Authority) proof(w http.ResponseWriter, r *http.Request, token string) (string, error) {
	if !a.o.dpop {
		return "", nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	wanted := a.nonce
	if a.o.nonces {
		a.nonce = rand.Text()
		w.Header().Set("DPoP-Nonce", a.nonce)
	}
	var claims struct {
		jwt.RegisteredClaims
		Method string `json:"htm"`
		Target string `json:"htu"`
		Hash   string `json:"ath"`
		Nonce  string `json:"nonce"`
	}
	var thumbprint string
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		return "", errors.New("invalid_dpop_proof")
	}
	_, err := jwt.ParseWithClaims(proofs[0], &claims, func(t *jwt.Token) (any, error) {
		if t.Header["typ"] != "dpop+jwt" {
			return nil, errors.New("another type")
		}
		key, _ := t.Header["jwk"].(map[string]any)
		if len(key) != 4 || key["kty"] != "EC" || key["crv"] != "P-256" {
			return nil, errors.New("another key")
		}
		sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, key["x"], key["y"]))
		thumbprint = base64.RawURLEncoding.EncodeToString(sum[:])
		point := []byte{4}
		for _, name := range []string{"x", "y"} {
			text, _ := key[name].(string)
			data, err := base64.RawURLEncoding.DecodeString(text)
			if err != nil {
				return nil, err
			}
			point = append(point, data...)
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithTimeFunc(a.Now), jwt.WithStrictDecoding())
	hash := ""
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		hash = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	age := time.Duration(1 << 62)
	if claims.IssuedAt != nil {
		age = a.Now().Sub(claims.IssuedAt.Time).Abs()
	}
	if err != nil || claims.Method != r.Method || claims.Target != "http://"+r.Host+r.URL.Path ||
		claims.Hash != hash || age > time.Minute || claims.ID == "" || a.proofs[claims.ID] {
		return "", errors.New("invalid_dpop_proof")
	}
	a.proofs[claims.ID] = true
	if claims.Nonce != wanted {
		return "", errors.New("use_dpop_nonce")
	}
	return thumbprint, nil
}
