package accesstoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	testIssuer   = "https://login.example/realms/work"
	testAudience = "https://tools.example/mcp"
)

// noon is the time at which tokens are verified.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// issuer is an authorization server without a network. It signs with another library than the
// one that verifies.
type issuer struct {
	t *testing.T

	mu      sync.Mutex
	keys    []map[string]any
	answers map[string]func() *http.Response // by address, in place of what it would answer
	asked   []string
}

func newIssuer(t *testing.T, keys ...map[string]any) *issuer {
	return &issuer{t: t, keys: keys, answers: map[string]func() *http.Response{}}
}

// RoundTrip implements http.RoundTripper.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, r.URL.String())
	answer := i.answers[r.URL.String()]
	if answer == nil {
		switch r.URL.String() {
		case "https://login.example/.well-known/oauth-authorization-server/realms/work":
			answer = document(map[string]any{"issuer": testIssuer, "jwks_uri": "https://login.example/keys"})
		case "https://login.example/keys":
			answer = document(map[string]any{"keys": i.keys})
		default:
			answer = status(http.StatusNotFound)
		}
	}
	resp := answer()
	resp.Request = r
	return resp, nil
}

func (i *issuer) count(address string) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, asked := range i.asked {
		if asked == address {
			n++
		}
	}
	return n
}

func (i *issuer) answer(address string, with func() *http.Response) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[address] = with
}

func document(v any) func() *http.Response {
	data, _ := json.Marshal(v)
	return func() *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(data)))}
	}
}

func status(code int) func() *http.Response {
	return func() *http.Response { return &http.Response{StatusCode: code, Body: http.NoBody} }
}

func redirect(to string) func() *http.Response {
	return func() *http.Response {
		return &http.Response{StatusCode: http.StatusFound, Body: http.NoBody, Header: http.Header{"Location": {to}}}
	}
}

func (i *issuer) config() Config {
	return Config{Issuer: testIssuer, Audience: testAudience, Name: "sub", Groups: "groups"}
}

func (i *issuer) verifier(c Config) *Verifier {
	i.t.Helper()
	if err := c.Check(); err != nil {
		i.t.Fatal(err)
	}
	v := New(c, nil, func(error) {}, func() time.Time { return noon })
	v.keys.client.Transport = i
	return v
}

// signer is a private key and its public part as a JSON Web Key.
type signer struct {
	method  jwt.SigningMethod
	private crypto.Signer
	public  map[string]any
}

func newRSA(t testing.TB, id string, bits int) signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return signer{jwt.SigningMethodRS256, key, map[string]any{"kty": "RSA", "kid": id, "n": encode(key.N.Bytes()), "e": "AQAB"}}
}

func newEC(t testing.TB, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, _ := key.PublicKey.Bytes()
	return signer{jwt.SigningMethodES256, key, map[string]any{"kty": "EC", "crv": "P-256", "kid": id, "x": encode(point[1:33]), "y": encode(point[33:])}}
}

func newEd(t testing.TB, id string) signer {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{jwt.SigningMethodEdDSA, key, map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(public)}}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// with returns claims of a valid token with changes; nil removes one.
func with(changes map[string]any) jwt.MapClaims {
	claims := jwt.MapClaims{"iss": testIssuer, "aud": testAudience, "sub": "ada", "exp": noon.Add(time.Minute).Unix()}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// sign signs claims, with changes to the header; nil removes a member.
func (s signer) sign(t testing.TB, claims jwt.MapClaims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(s.method, claims)
	token.Header["kid"] = s.public["kid"]
	maps.Copy(token.Header, header)
	maps.DeleteFunc(token.Header, func(_ string, v any) bool { return v == nil })
	text, err := token.SignedString(s.private)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// byHand signs a header and claims as they are spelled, with ES256.
func (s signer) byHand(t testing.TB, header, claims string, der bool) string {
	t.Helper()
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	sum := crypto.SHA256.New()
	sum.Write([]byte(text))
	key := s.private.(*ecdsa.PrivateKey)
	if der {
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + encode(signature)
	}
	r, q, err := ecdsa.Sign(rand.Reader, key, sum.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encode(append(r.FillBytes(make([]byte, 32)), q.FillBytes(make([]byte, 32))...))
}
