package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// assertionTime is how long a signed assertion is valid.
const assertionTime = 5 * time.Minute

// sign returns the assertion that authenticates a client (RFC 7523 section 3):
// a token about itself for the issuer, signed with its private key.
func sign(key, client, audience string, now time.Time) (string, error) {
	private, err := readKey(key)
	if err != nil {
		return "", err
	}
	alg, signer, err := signerOf(private)
	if err != nil {
		return "", err
	}
	claims := map[string]any{
		"iss": client, "sub": client, "aud": audience, "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionTime).Unix(),
	}
	token, err := signed(map[string]any{"alg": alg, "typ": "JWT"}, claims, signer)
	if err != nil {
		return "", fmt.Errorf("signing with oauth.privateKey: %w", err)
	}
	return token, nil
}

// signed returns a JSON Web Token in its compact form (RFC 7515 section 7.1).
func signed(header, claims map[string]any, signer func([]byte) ([]byte, error)) (string, error) {
	head, err := segment(header)
	if err != nil {
		return "", err
	}
	body, err := segment(claims)
	if err != nil {
		return "", err
	}
	signature, err := signer([]byte(head + "." + body))
	return head + "." + body + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

func segment(v any) (string, error) {
	data, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(data), err
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
	return nil, fmt.Errorf("oauth.privateKey is a %q, which is not supported; use an unencrypted PKCS #8 key", block.Type)
}

// signerOf returns the algorithm of a key (RFC 7518, RFC 8037) and a function
// that signs with it.
func signerOf(key any) (alg string, sign func([]byte) ([]byte, error), err error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return "RS256", func(data []byte) ([]byte, error) {
			sum := sha256.Sum256(data)
			return rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		}, nil
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return "ES256", func(data []byte) ([]byte, error) { sum := sha256.Sum256(data); return signPoint(key, sum[:]) }, nil
		case 384:
			return "ES384", func(data []byte) ([]byte, error) { sum := sha512.Sum384(data); return signPoint(key, sum[:]) }, nil
		}
	case ed25519.PrivateKey:
		return "EdDSA", func(data []byte) ([]byte, error) { return ed25519.Sign(key, data), nil }, nil
	}
	return "", nil, errors.New("the key type of oauth.privateKey is not supported; use RSA, P-256, P-384 or Ed25519")
}

// signPoint signs as RFC 7518 section 3.4 requires: r and s have a fixed
// length.
func signPoint(key *ecdsa.PrivateKey, sum []byte) ([]byte, error) {
	r, s, err := ecdsa.Sign(rand.Reader, key, sum)
	if err != nil {
		return nil, err
	}
	size := (key.Curve.Params().BitSize + 7) / 8
	out := make([]byte, 2*size)
	r.FillBytes(out[:size])
	s.FillBytes(out[size:])
	return out, nil
}
