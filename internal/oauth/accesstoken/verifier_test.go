package accesstoken

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
)

func TestValidTokens(t *testing.T) {
	rsaKey, ec, ed := newRSA(t, "r", 2048), newEC(t, "e"), newEd(t, "d")
	rsaKey.public["alg"], ec.public["use"], ed.public["key_ops"] = "RS256", "sig", []string{"verify"}
	i := newIssuer(t, rsaKey.public, ec.public, ed.public)
	until := noon.Add(2 * time.Minute)
	nested := jwt.MapClaims{"sub": "x", "name": "Ada Lovelace", "realm_access": map[string]any{"roles": []string{"a", "b"}},
		"resource_access": map[string]any{"my.client": map[string]any{"roles": "one"}}, "https://x.example/groups": []string{"url"}, "a.b": "exact", "a": map[string]any{"b": "nested"}}
	tests := []struct {
		name  string
		from  signer
		token string
		names [2]string // of claims
		want  Token
	}{
		{"RS256", rsaKey, rsaKey.sign(t, with(nil), nil), [2]string{}, Token{Name: "ada", Expires: until}},
		{"ES256", ec, ec.sign(t, with(nil), nil), [2]string{}, Token{Name: "ada", Expires: until}},
		{"EdDSA", ed, ed.sign(t, with(nil), nil), [2]string{}, Token{Name: "ada", Expires: until}},
		{"several audiences", ec, ec.sign(t, with(map[string]any{"aud": []string{"other", testAudience}}), nil), [2]string{}, Token{Name: "ada", Expires: until}},
		{"type of RFC 9068", ec, ec.sign(t, with(nil), map[string]any{"typ": "at+JWT"}), [2]string{}, Token{Name: "ada", Expires: until}},
		{"long type of RFC 9068", ec, ec.sign(t, with(nil), map[string]any{"typ": "application/at+jwt"}), [2]string{}, Token{Name: "ada", Expires: until}},
		{"no type, no key id", ed, ed.sign(t, with(nil), map[string]any{"typ": nil, "kid": nil}), [2]string{}, Token{Name: "ada", Expires: until}},
		{"expired within the skew", ec, ec.sign(t, with(map[string]any{"exp": noon.Add(-59 * time.Second).Unix()}), nil), [2]string{}, Token{Name: "ada", Expires: noon.Add(time.Second)}},
		{"fraction of a second", ec, ec.sign(t, with(map[string]any{"exp": float64(noon.Unix()) + 60.5}), nil), [2]string{}, Token{Name: "ada", Expires: until}},
		{"not yet, within the skew", ec, ec.sign(t, with(map[string]any{"nbf": noon.Add(time.Minute).Unix()}), nil), [2]string{}, Token{Name: "ada", Expires: until}},
		{"groups", ec, ec.sign(t, with(map[string]any{"groups": []string{"a", "b c"}}), nil), [2]string{}, Token{Name: "ada", Groups: []string{"a", "b c"}, Expires: until}},
		{"one group", ec, ec.sign(t, with(map[string]any{"groups": "a"}), nil), [2]string{}, Token{Name: "ada", Groups: []string{"a"}, Expires: until}},
		{"scopes", ec, ec.sign(t, with(map[string]any{"scope": "a b"}), nil), [2]string{}, Token{Name: "ada", Scopes: []string{"a", "b"}, Expires: until}},
		{"scopes of Entra ID", ec, ec.sign(t, with(map[string]any{"scp": "a b"}), nil), [2]string{}, Token{Name: "ada", Scopes: []string{"a", "b"}, Expires: until}},
		{"scopes of Okta", ec, ec.sign(t, with(map[string]any{"scp": []string{"a", "b"}}), nil), [2]string{}, Token{Name: "ada", Scopes: []string{"a", "b"}, Expires: until}},
		{"nested groups", ec, ec.sign(t, with(nested), nil), [2]string{"name", "realm_access.roles"}, Token{Name: "Ada Lovelace", Groups: []string{"a", "b"}, Expires: until}},
		{"nested below a name with a dot", ec, ec.sign(t, with(nested), nil), [2]string{"name", "resource_access.my.client.roles"}, Token{Name: "Ada Lovelace", Groups: []string{"one"}, Expires: until}},
		{"name of a claim that is a URL", ec, ec.sign(t, with(nested), nil), [2]string{"a.b", "https://x.example/groups"}, Token{Name: "exact", Groups: []string{"url"}, Expires: until}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := i.config()
			if test.names[0] != "" {
				c.Name, c.Groups = test.names[0], test.names[1]
			}
			got, err := i.verifier(c).Verify(t.Context(), test.token)
			if err != nil {
				t.Fatal(err)
			}
			test.want.Expires, got.Expires = test.want.Expires.UTC(), got.Expires.UTC()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInvalidTokens(t *testing.T) {
	rsaKey, ec, ed, other := newRSA(t, "r", 2048), newEC(t, "e"), newEd(t, "d"), newEC(t, "e")
	weak, encrypts := newRSA(t, "weak", 1024), newEC(t, "enc")
	encrypts.public["use"] = "enc"
	signs, pss, leaked := newEC(t, "signs"), newRSA(t, "pss", 2048), newEC(t, "leaked")
	signs.public["key_ops"], pss.public["alg"] = []string{"sign"}, "PS256"
	private, _ := leaked.private.(*ecdsa.PrivateKey).Bytes()
	leaked.public["d"] = encode(private)
	i := newIssuer(t, rsaKey.public, ec.public, ed.public, weak.public, encrypts.public, signs.public, pss.public, leaked.public, map[string]any{"kty": "oct", "kid": "o", "k": "c2VjcmV0", "alg": "HS256"})
	claims := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"ada","exp":%d}`, testIssuer, testAudience, noon.Unix())
	der, err := x509.MarshalPKIXPublicKey(rsaKey.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	hs := func(header string, key []byte) string {
		text := encode([]byte(header)) + "." + encode([]byte(claims))
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil))
	}
	of := func(name string, value any) string { return ec.sign(t, with(map[string]any{name: value}), nil) }
	head := func(name string, value any) string { return ec.sign(t, with(nil), map[string]any{name: value}) }
	rs512 := rsaKey
	rs512.method = jwt.SigningMethodRS512
	valid := ec.sign(t, with(nil), nil)
	parts := strings.Split(valid, ".")
	const otherAlgorithm, noJWT, wrong, unknown = "an algorithm other than", "not a JSON Web Token", "the signature of the token is wrong", "a key that the issuer does not have"
	tests := []struct{ name, token, want string }{
		{"none", encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + ".", otherAlgorithm},
		{"none in other letters", encode([]byte(`{"alg":"nOnE"}`)) + "." + encode([]byte(claims)) + ".", otherAlgorithm},
		{"no algorithm", encode([]byte(`{}`)) + "." + encode([]byte(claims)) + ".", otherAlgorithm},
		{"HMAC with the public key in PEM", hs(`{"alg":"HS256","kid":"r"}`, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), otherAlgorithm},
		{"HMAC with the public key", hs(`{"alg":"HS256","kid":"r"}`, der), otherAlgorithm},
		{"HMAC with the key of the set", hs(`{"alg":"HS256","kid":"o"}`, []byte("secret")), otherAlgorithm},
		{"RS512", rs512.sign(t, with(nil), nil), otherAlgorithm},
		{"two algorithms", ec.byHand(t, `{"alg":"none","alg":"ES256","kid":"e"}`, claims, false), noJWT},
		{"DER", ec.byHand(t, `{"alg":"ES256","kid":"e"}`, claims, true), wrong},
		{"key of another kind", ec.sign(t, with(nil), map[string]any{"kid": "r"}), unknown},
		{"algorithm of another key", ec.byHand(t, `{"alg":"RS256","kid":"e"}`, claims, false), unknown},
		{"another key of the same id", other.sign(t, with(nil), nil), wrong},
		{"unknown key", other.sign(t, with(nil), map[string]any{"kid": "../../e"}), unknown},
		{"key id that is not text", ec.byHand(t, `{"alg":"ES256","kid":["e"]}`, claims, false), noJWT},
		{"short key", weak.sign(t, with(nil), nil), unknown},
		{"key for encryption", encrypts.sign(t, with(nil), nil), unknown},
		{"key for other operations", signs.sign(t, with(nil), nil), unknown},
		{"key for another algorithm", pss.sign(t, with(nil), nil), unknown},
		{"published private key", leaked.sign(t, with(nil), nil), unknown},
		{"no signature", parts[0] + "." + parts[1] + ".", wrong},
		{"zeros as a signature", parts[0] + "." + parts[1] + "." + encode(make([]byte, 64)), wrong},
		{"other claims", parts[0] + "." + encode([]byte(claims)) + "." + parts[2], wrong},
		{"crit", head("crit", []string{"exp"}), "the header crit"},
		{"crit that the library knows", ec.sign(t, with(nil), map[string]any{"crit": []string{"b64"}, "b64": true}), "the header crit"},
		{"empty crit", head("crit", []string{}), "the header crit"},
		{"jku", head("jku", "https://evil.example/keys"), "the header jku"},
		{"x5u", head("x5u", "https://evil.example/cert"), "the header x5u"},
		{"jwk", other.sign(t, with(nil), map[string]any{"jwk": other.public}), "the header jwk"},
		{"jwk of the issuer", head("jwk", ec.public), "the header jwk"},
		{"another type", head("typ", "logout+jwt"), "something other than an access token"},
		{"a type that is not text", head("typ", 1), "something other than an access token"},
		{"another issuer", of("iss", "https://evil.example"), "another issuer"},
		{"issuer with a slash", of("iss", testIssuer+"/"), "another issuer"},
		{"issuer in a list", of("iss", []string{testIssuer}), "another issuer"},
		{"no issuer", of("iss", nil), "another issuer"},
		{"another audience", of("aud", "client"), "another audience"},
		{"longer audience", of("aud", testAudience+"/other"), "another audience"},
		{"no audience", of("aud", nil), "another audience"},
		{"empty audience", of("aud", []string{}), "another audience"},
		{"audience with something else", of("aud", []any{testAudience, 1}), "another audience"},
		{"no end", of("exp", nil), "does not say when it expires"},
		{"end as text", of("exp", "9999999999"), "does not say when it expires"},
		{"end beyond time", of("exp", 1e300), "does not say when it expires"},
		{"negative end", of("exp", -1), "does not say when it expires"},
		{"expired", of("exp", noon.Add(-time.Minute).Unix()), "has expired"},
		{"not yet", of("nbf", noon.Add(61*time.Second).Unix()), "not valid yet"},
		{"not yet, as text", of("nbf", "0"), "not valid yet"},
		{"no name", of("sub", nil), "claim sub of the token is not a name"},
		{"empty name", of("sub", ""), "claim sub of the token is not a name"},
		{"number as a name", of("sub", 7), "claim sub of the token is not a name"},
		{"invisible name", of("sub", "a\u200bda"), "claim sub of the token is not a name"},
		{"name with a line", of("sub", "ada\nbob"), "claim sub of the token is not a name"},
		{"long name", of("sub", strings.Repeat("a", 257)), "claim sub of the token is not a name"},
		{"half a character", ec.byHand(t, `{"alg":"ES256","kid":"e"}`, strings.Replace(claims, `"ada"`, `"\ud800"`, 1), false), "claim sub of the token is not a name"},
		{"invalid UTF-8", ec.byHand(t, `{"alg":"ES256","kid":"e"}`, strings.Replace(claims, `"ada"`, "\"\xff\"", 1), false), "not a JSON object"},
		{"two names", ec.byHand(t, `{"alg":"ES256","kid":"e"}`, strings.Replace(claims, `"sub"`, `"sub":"bob","sub"`, 1), false), "not a JSON object"},
		{"name in other letters", ec.byHand(t, `{"alg":"ES256","kid":"e"}`, strings.Replace(claims, `"sub"`, `"Sub"`, 1), false), "claim sub of the token is not a name"},
		{"groups in an object", of("groups", map[string]any{"a": true}), "neither a list of names nor a name"},
		{"numbers as groups", of("groups", []any{"a", 1}), "neither a list of names nor a name"},
		{"empty group", of("groups", []string{""}), "a group that is not a name"},
		{"groups elsewhere", of("_claim_names", map[string]any{"groups": "src1"}), "says where it is"},
		{"number as a scope", of("scope", 1), "the scopes of the token are not text"},
		{"claims in a list", ec.byHand(t, `{"alg":"ES256","kid":"e"}`, `[]`, false), "not a JSON object"},
		{"huge", of("x", strings.Repeat("x", maxToken)), "longer than"},
		{"nothing", "", noJWT},
		{"no token", "access-7", noJWT},
		{"encrypted", "a.b.c.d.e", noJWT},
		{"in JSON", `{"payload":"e30","protected":"e30","signature":""}`, noJWT},
	}
	v := i.verifier(i.config())
	v.keys.pause = 0
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := v.Verify(t.Context(), test.token)
			if _, ok := errors.AsType[*InvalidError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, test.want)
			}
		})
	}
	if _, err := v.Verify(t.Context(), valid); err != nil {
		t.Error(err)
	}
	for _, asked := range i.asked {
		if strings.Contains(asked, "evil") {
			t.Errorf("asked %s, which a token named", asked)
		}
	}
}

func TestConfigurations(t *testing.T) {
	good := Config{Issuer: testIssuer, Audience: testAudience, Name: "sub", Groups: "groups"}
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"good", func(*Config) {}, ""},
		{"on this machine", func(c *Config) { c.Issuer, c.KeysURL = "http://127.0.0.1:8080/x", "http://[::1]/keys" }, ""},
		{"no issuer", func(c *Config) { c.Issuer = "" }, "issuer is missing"},
		{"no audience", func(c *Config) { c.Audience = "" }, "audience is missing"},
		{"issuer over http", func(c *Config) { c.Issuer = "http://login.example" }, "issuer: must begin with https"},
		{"keys over http", func(c *Config) { c.KeysURL = "http://login.example/keys" }, "jwksUri: must begin with https"},
		{"keys in a file", func(c *Config) { c.KeysURL = "file:///keys" }, "jwksUri: must be a web address"},
		{"audience that is not an address", func(c *Config) { c.Audience = "api://tools" }, "audience: must begin with https"},
		{"password", func(c *Config) { c.Issuer = "https://a:b@login.example" }, "issuer: must be a web address"},
		{"quote", func(c *Config) { c.Audience = `https://tools.example/"mcp` }, "audience: must be a web address"},
		{"query", func(c *Config) { c.Issuer += "?x=1" }, "query or a fragment"},
		{"fragment", func(c *Config) { c.Audience += "#x" }, "query or a fragment"},
		{"no claim", func(c *Config) { c.Name = "" }, "claims"},
	}
	for _, test := range tests {
		c := good
		test.change(&c)
		switch err := c.Check(); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	ec := newEC(f, "e")
	f.Add(ec.sign(f, with(nil), nil), []byte(`{"iss":"x"}`))
	f.Add(encode([]byte(`{"alg":"none"}`))+"..", []byte(`{"sub":"a","groups":["b"],"aud":[],"exp":1e9}`))
	f.Add("a.b.c", []byte(`{"iss":"`+testIssuer+`","aud":"`+testAudience+`","exp":9999999999,"sub":"\ud800"}`))
	f.Fuzz(func(t *testing.T, token string, claims []byte) {
		i := newIssuer(t, ec.public)
		v := i.verifier(i.config())
		v.keys.pause = 0
		for _, text := range []string{token, ec.byHand(t, `{"alg":"ES256","kid":"e"}`, string(claims), false)} {
			got, err := v.Verify(t.Context(), text)
			if err != nil {
				if _, ok := errors.AsType[*InvalidError](err); !ok {
					t.Fatalf("%v", err)
				}
				continue
			}
			if !isName(got.Name) || !noon.Before(got.Expires) {
				t.Errorf("accepted %+v", got)
			}
		}
	})
}

// A token that was verified is accepted for a while, for its audience and until it expires.
func TestVerifiedTokens(t *testing.T) {
	ec := newEC(t, "e")
	i := newIssuer(t, ec.public)
	v, now := i.verifier(i.config()), noon
	v.now = func() time.Time { return now }
	token := ec.sign(t, with(map[string]any{"exp": noon.Add(-55 * time.Second).Unix()}), nil) // five seconds are left of the skew
	other := ec.sign(t, with(map[string]any{"aud": testAudience + "/p"}), nil)
	accepted := func(token string, more ...string) bool {
		_, err := v.Verify(t.Context(), token, more...)
		return err == nil
	}
	if !accepted(token) || !accepted(other, testAudience+"/p") {
		t.Fatal("valid tokens are not accepted")
	}
	if accepted(other) || accepted(other, testAudience+"/q") {
		t.Error("a token was accepted for another audience")
	}
	if now = noon.Add(4 * time.Second); !accepted(token) {
		t.Error("not accepted before it expires")
	}
	if now = noon.Add(5 * time.Second); accepted(token) {
		t.Error("accepted after it has expired")
	}
	i.keys, v.keys.keys, v.keys.pause = []map[string]any{newEC(t, "f").public}, []jose.JSONWebKey{}, 0 // a rotation
	if now = noon.Add(9 * time.Second); !accepted(other, testAudience+"/p") {
		t.Error("verified again too early")
	}
	if now = noon.Add(11 * time.Second); accepted(other, testAudience+"/p") {
		t.Error("never verified again")
	}
}
