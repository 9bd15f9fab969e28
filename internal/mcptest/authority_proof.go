package mcptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

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
