package oauth

import (
	"bytes"
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
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestPasted(t *testing.T) {
	for text, want := range map[string]reply{
		"http://127.0.0.1:1/callback?code=a%2Bb&state=s&iss=https%3A%2F%2Fi#frag": {code: "a+b", state: "s", issuer: "https://i"},
		" 'http://127.0.0.1:1/callback?code=a&state=s'\r\n":                       {code: "a", state: "s"},
		"?code=a&state=s": {code: "a", state: "s"},
		"error=access_denied&error_description=no+way&state=s": {err: "access_denied", description: "no way", state: "s"},
		"4/0AbC-d_e": {code: "4/0AbC-d_e", codeOnly: true},
	} {
		if got, err := readPasted(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"https://example.com/", "https://example.com/#code=x", "code=%zz"} {
		if got, err := readPasted(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestRepliesAreChecked(t *testing.T) {
	plain := &begun{State: "s", Login: record{Issuer: "https://i"}}
	telling := &begun{State: "s", Login: record{Issuer: "https://i"}, SendsIssuer: true}
	for _, tt := range []struct {
		name    string
		r       reply
		b       *begun
		problem string // "" means fine
	}{
		{"fine", reply{code: "c", state: "s"}, plain, ""},
		{"with issuer", reply{code: "c", state: "s", issuer: "https://i"}, telling, ""},
		{"unannounced issuer", reply{code: "c", state: "s", issuer: "https://i"}, plain, ""},
		{"codeOnly code", reply{code: "c", codeOnly: true}, plain, ""},
		{"state", reply{code: "c", state: "S"}, plain, "its state does not match"},
		{"no state", reply{code: "c"}, plain, "its state does not match"},
		{"wrong issuer", reply{code: "c", state: "s", issuer: "https://i/"}, telling, "comes from the authorization server"},
		{"wrong unannounced issuer", reply{code: "c", state: "s", issuer: "https://j"}, plain, "comes from the authorization server"},
		{"no issuer", reply{code: "c", state: "s"}, telling, "lacks the issuer https://i"},
		{"codeOnly code without issuer", reply{code: "c", codeOnly: true}, telling, "paste the whole URL"},
		{"error", reply{err: "access_denied", state: "s"}, plain, `the login was refused: "access_denied"`},
		{"error from another server", reply{err: "access_denied", state: "s", issuer: "https://j"}, plain, "comes from the authorization server"},
		{"nothing", reply{state: "s"}, plain, "returned no code"},
	} {
		err := tt.r.check(tt.b)
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func FuzzPasted(f *testing.F) {
	f.Add("http://127.0.0.1:1/callback?code=a&state=s")
	f.Add("abc")
	b := &begun{State: "our-state", Login: record{Issuer: "https://i"}, SendsIssuer: true}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := readPasted(text); err == nil && r.check(b) == nil && (!strings.Contains(text, "our-state") || r.issuer != "https://i") {
			t.Errorf("%q was taken: %+v", text, r)
		}
	})
}

// The callback server accepts one answer, at its own path and host name.
func TestCallback(t *testing.T) {
	back, err := openCallback(t.Context(), "", "s")
	if err != nil {
		t.Fatal(err)
	}
	u := parse(t, back.redirect)
	if u.Hostname() != "127.0.0.1" || u.Path != "/callback" {
		t.Errorf("it listens at %s", back.redirect)
	}
	ask := func(method, address, host string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	const query = "?code=c&state=s"
	for name, code := range map[string]int{
		"another name": ask(http.MethodGet, back.redirect+query, "evil.example:"+u.Port()),
		"another port": ask(http.MethodGet, back.redirect+query, "127.0.0.1:1"),
		"another path": ask(http.MethodGet, "http://"+u.Host+"/"+query, u.Host),
		"a post":       ask(http.MethodPost, back.redirect+query, u.Host),
		"no answer":    ask(http.MethodGet, back.redirect, u.Host),
		"a state":      ask(http.MethodGet, back.redirect+"?code=evil&state=other", u.Host),
		"a refusal":    ask(http.MethodGet, back.redirect+"?error=access_denied", u.Host),
	} {
		if code != http.StatusNotFound {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code := ask(http.MethodGet, back.redirect+query, "localhost:"+u.Port()); code != http.StatusOK {
		t.Errorf("the browser got %d", code)
	}
	if code := ask(http.MethodGet, back.redirect+"?code=other&state=s", u.Host); code != http.StatusOK {
		t.Errorf("a second answer got %d", code)
	}
	got, err := back.await(t.Context(), "", LoginOptions{})
	if err != nil || got.code != "c" {
		t.Errorf("%+v, %v", got, err)
	}
	back.close(t.Context())
	if _, err := openCallback(t.Context(), back.redirect, "s"); err != nil {
		t.Errorf("its port is not free again: %v", err)
	}
	for _, redirect := range []string{"http://example.com/callback", "ftp://127.0.0.1/", "callback"} {
		if _, err := openCallback(t.Context(), redirect, "s"); err == nil {
			t.Errorf("%s was taken", redirect)
		}
	}
}

func TestLoginEndsWithItsContext(t *testing.T) {
	s := newSite(t, "--fault", "silence")
	c := s.client(t, nil)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := c.Login(ctx, LoginOptions{
		Browse: func(context.Context, string) error { cancel(enough); return nil },
		Paste:  func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() },
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// A code that was already used fails, and nothing is stored.
func TestCodeIsUsedOnce(t *testing.T) {
	s := newSite(t)
	c := s.client(t, nil)
	code := ""
	paste := func(ctx context.Context, address string) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return "", err
		}
		_ = resp.Body.Close()
		back := parse(t, resp.Header.Get("Location"))
		q := back.Query()
		if code == "" {
			code = q.Get("code")
		}
		q.Set("code", code)
		back.RawQuery = q.Encode()
		return back.String(), nil
	}
	if _, err := c.Login(t.Context(), LoginOptions{Paste: paste}); err != nil {
		t.Fatal(err)
	}
	first := held(t, c)
	if _, err := c.Login(t.Context(), LoginOptions{Paste: paste}); err == nil || !strings.Contains(err.Error(), `it returned "invalid_grant"`) || strings.Contains(err.Error(), code) {
		t.Errorf("a used code: %v", err)
	}
	if held(t, s.client(t, nil)) != first {
		t.Error("the failed login took the place of the good one")
	}
}

// A client of serve has its own login, whose user has a browser elsewhere.
func TestLoginsOfClients(t *testing.T) {
	s := newSite(t)
	const back = "http://127.0.0.1:1/login/callback"
	ada := s.client(t, nil).For("ada")
	address, pending, err := ada.Begin(t.Context(), back, "id.")
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	at := parse(t, resp.Header.Get("Location"))
	answer := at.Query()
	if !strings.HasPrefix(at.String(), back+"?") || !strings.HasPrefix(answer.Get("state"), "id.") || len(answer.Get("state")) < 20 {
		t.Errorf("the browser returns to %s", at)
	}
	answer.Set("state", "id.other")
	if err := ada.Finish(t.Context(), pending, answer); err == nil || !strings.Contains(err.Error(), "its state does not match") {
		t.Errorf("with another state: %v", err)
	}
	answer.Set("state", at.Query().Get("state"))
	if err := s.client(t, nil).For("ada").Finish(t.Context(), pending, answer); err != nil { // in another process
		t.Fatal(err)
	}
	if !s.accepted(t, held(t, s.client(t, nil).For("ada"))) {
		t.Error("the token is refused")
	}
	for _, other := range []string{"", "bob", "ada\x00secret"} {
		if token, err := s.client(t, nil).For(other).Token(t.Context()); token != "" || err != nil {
			t.Errorf("%q has the token %q, %v", other, token, err)
		}
	}
	if out, err := s.client(t, nil).For("ada").Logout(t.Context()); err != nil || !out.Had {
		t.Errorf("the logout: %+v, %v", out, err)
	}
}

// Tokens are sent only to servers that are reached securely.
func TestNoTokenWithoutHTTPS(t *testing.T) {
	s := newSite(t)
	c := s.client(t, nil)
	s.login(t, c)
	c.url = "http://mcp.example.com/mcp"
	if token, err := c.Token(t.Context()); token != "" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	if _, err := c.Login(t.Context(), LoginOptions{}); err == nil || !strings.Contains(err.Error(), "not https") {
		t.Error(err)
	}
}

// A server that now names another authorization server does not make toolreg
// send the secret of the settings there, and a registered client is not used
// there.
func TestSecretsStayAtTheirIssuer(t *testing.T) {
	first, second := newSite(t, "--client", "me", "--secret", "s3cret", "--method", "client_secret_post"), newSite(t, "--client", "me", "--secret", "s3cret", "--method", "client_secret_post")
	for _, grant := range []string{settings.GrantAuthorizationCode, settings.GrantClientCredentials} {
		o := &settings.OAuth{Grant: grant, ClientID: "me", ClientSecret: "s3cret"}
		c := first.client(t, o)
		first.login(t, c)
		mine := first.Issuer
		first.Issuer = second.Issuer
		first.Expire()
		c = first.client(t, o) // another run
		var err error
		if grant == settings.GrantClientCredentials {
			_, err = c.Received(t.Context(), held(t, c), http.StatusUnauthorized, nil)
		} else {
			_, err = c.Login(t.Context(), LoginOptions{Browse: browse(t), Agree: agrees})
		}
		if err == nil || !strings.Contains(err.Error(), "if that is right, set oauth.issuer") {
			t.Errorf("%s: %v", grant, err)
		}
		first.Issuer = mine
	}
	if n := second.Count("token client_credentials") + second.Count("token authorization_code") + second.Count("authorize"); n != 0 {
		t.Errorf("the other authorization server was asked %d times", n)
	}
}

// If the settings do not name an issuer, the MCP server chooses it: no
// credentials are sent there before the user has agreed, whatever the grant.
func TestUserMustAgreeToTheFirstIssuer(t *testing.T) {
	refuses := func(context.Context, string, string) (bool, error) { return false, nil }
	for name, test := range map[string]struct {
		oauth   settings.OAuth
		setting string // that the question names; "" means no question
	}{
		"a browser":          {settings.OAuth{ClientSecret: "s3cret"}, "oauth.clientSecret"},
		"client credentials": {settings.OAuth{Grant: settings.GrantClientCredentials, ClientSecret: "s3cret"}, "oauth.clientSecret"},
		"an assertion":       {settings.OAuth{Grant: settings.GrantJWTBearer, Assertion: "s3cret"}, "oauth.assertion"},
		"no secret":          {settings.OAuth{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "--client", "me", "--secret", "s3cret", "--method", "client_secret_post")
			sent := 0
			s.wrapped(func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					sent += strings.Count(string(body), "s3cret")
					r.Body = io.NopCloser(bytes.NewReader(body))
					h.ServeHTTP(w, r)
				})
			})
			test.oauth.ClientID = "me"
			c := s.client(t, &test.oauth)
			for _, agree := range []func(context.Context, string, string) (bool, error){nil, refuses} {
				_, err := c.Login(t.Context(), LoginOptions{Browse: browse(t), Agree: agree})
				if test.setting != "" && (err == nil || agree == nil && (!errors.Is(err, registry.ErrNeedsConfirmation) || !strings.Contains(err.Error(), "would get "+test.setting)) || agree != nil && !errors.Is(err, ErrRefused)) {
					t.Errorf("login: %v", err)
				}
			}
			if c.unattended() {
				if _, err := c.Received(t.Context(), "", http.StatusUnauthorized, nil); err == nil || !strings.Contains(err.Error(), "set oauth.issuer") {
					t.Errorf("a call: %v", err)
				}
			}
			if sent != 0 {
				t.Errorf("the secret was sent %d times", sent)
			}
			asked := ""
			_, _ = c.Login(t.Context(), LoginOptions{Browse: browse(t), Agree: func(_ context.Context, issuer, setting string) (bool, error) {
				asked = setting + " " + issuer
				return true, nil
			}})
			if want := strings.TrimSpace(test.setting + " " + s.Issuer); test.setting != "" && (asked != want || sent == 0) || test.setting == "" && asked != "" {
				t.Errorf("asked %q, want %q; sent %d times", asked, want, sent)
			}
		})
	}
}

// A process that keeps its connection, such as serve, uses a login made by another process.
func TestLoginInAnotherProcess(t *testing.T) {
	s := newSite(t, "--scopes", "read write")
	serving := s.client(t, nil)
	refused := func(sent string, status int, challenge string) (bool, error) {
		return serving.Received(t.Context(), sent, status, wanting(challenge))
	}
	if token, err := serving.Token(t.Context()); token != "" || err != nil {
		t.Fatalf("token %q, %v", token, err)
	}
	if again, err := refused("", 401, "Bearer"); again || !errors.Is(err, registry.ErrNeedsLogin) {
		t.Errorf("before the login: %v, %v", again, err)
	}
	s.login(t, s.client(t, nil), "read")
	if again, err := refused("", 401, "Bearer"); !again || err != nil {
		t.Errorf("after the login: %v, %v", again, err)
	}
	first := held(t, serving)
	wider := `Bearer error="insufficient_scope", scope="write"`
	if again, err := refused(first, 403, wider); again || !errors.Is(err, registry.ErrNeedsLogin) {
		t.Errorf("before the wider login: %v, %v", again, err)
	}
	s.login(t, s.client(t, nil), "read", "write")
	if again, err := refused(first, 403, wider); !again || err != nil || held(t, serving) == first {
		t.Errorf("after the wider login: %v, %v", again, err)
	}
}

// The next login requests what each of several refused requests lacked, whichever status they were refused with.
func TestMissingScopesAreCollected(t *testing.T) {
	s := newSite(t, "--scopes", "list read write")
	c := s.client(t, nil)
	s.login(t, c, "list")
	token := held(t, c)
	for scope, status := range map[string]int{"read": http.StatusForbidden, "write": http.StatusUnauthorized} {
		again, err := c.Received(t.Context(), token, status, wanting(`Bearer error="insufficient_scope", scope="`+scope+`"`))
		if again || !errors.Is(err, registry.ErrNeedsLogin) || !strings.Contains(err.Error(), "(scope "+scope+")") {
			t.Errorf("%s is missing: %v, %v", scope, again, err)
		}
	}
	if got := s.login(t, s.client(t, nil)).Scopes; len(got) != 3 {
		t.Errorf("the login has the scopes %q", got)
	}
}

func TestTokensExpire(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(seconds int64) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	hour := token{Access: "x", Given: now.Unix(), Expires: now.Unix() + 3600}
	short := token{Access: "x", Given: now.Unix(), Expires: now.Unix() + 4}
	for name, fresh := range map[string]bool{
		"at once":            hour.fresh(now),
		"until 20 s before":  hour.fresh(at(3579)) && !hour.fresh(at(3580)),
		"a short one":        short.fresh(at(2)) && !short.fresh(at(3)),
		"one without an end": token{Access: "x", Given: now.Unix()}.fresh(at(1e9)),
		"with a slow clock":  hour.fresh(at(-20)) && !hour.fresh(at(-21)),
		"none":               !token{Expires: now.Unix() + 3600}.fresh(now),
	} {
		if !fresh {
			t.Error(name)
		}
	}
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(answer)) }))
	defer s.Close()
	w := newWeb(s.URL)
	defer w.close()
	for raw, want := range map[string]int64{"3600": 3600, `"3600"`: 3600, "3600.5": 3600, "0.5": 1, "-1": 0, "0": 0, "null": 0, `"x"`: 0, "[]": 0, "1e300": 315360000, `"NaN"`: 0} {
		answer = `{"access_token":"t","expires_in":` + raw + `}`
		got, err := w.tokens(t.Context(), s.URL, credentials{}, url.Values{}, now)
		if err != nil || want == 0 && got.Expires != 0 || want > 0 && got.Expires != now.Unix()+want {
			t.Errorf("expires_in %s: %d, %v", raw, got.Expires, err)
		}
	}
}

// An expired token is renewed for the same resource before a request is sent.
func TestExpiredTokenIsRenewedFirst(t *testing.T) {
	s := newSite(t, "--ttl", "1h")
	c := s.client(t, nil)
	l := s.login(t, c)
	if !l.Renews || l.Issuer != s.Issuer || l.Resource != s.Resource || time.Until(l.Expires) < 50*time.Minute {
		t.Errorf("%+v", l)
	}
	first := held(t, c)
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	c.now, s.Now = later, later
	second := held(t, c)
	if second == first || !s.accepted(t, second) || s.Count("token refresh_token") != 1 {
		t.Errorf("%q, then %q", first, second)
	}
	// A temporary failure of the authorization server does not end the login.
	c.now = func() time.Time { return time.Now().Add(4 * time.Hour) }
	s.wrapped(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, second, http.StatusServiceUnavailable) })
	})
	if _, err := c.Token(t.Context()); err == nil || errors.Is(err, registry.ErrNeedsLogin) || strings.Contains(err.Error(), second) {
		t.Errorf("a server that is away: %v", err)
	}
	s.wrapped(nil)
	if third := held(t, c); third == second {
		t.Error("it was not renewed")
	}
}

func TestAssertions(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	now := time.Unix(1_800_000_000, 0)
	verify := map[string]func(signed string, signature []byte) bool{
		"ES256": func(signed string, signature []byte) bool {
			sum := sha256.Sum256([]byte(signed))
			return len(signature) == 64 && ecdsa.Verify(&p256.PublicKey, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
		},
		"RS256": func(signed string, signature []byte) bool {
			sum := sha256.Sum256([]byte(signed))
			return rsa.VerifyPKCS1v15(&rsaKey.PublicKey, 5, sum[:], signature) == nil
		},
		"EdDSA": func(signed string, signature []byte) bool { return ed25519.Verify(public, []byte(signed), signature) },
	}
	for alg, key := range map[string]string{"ES256": encode(p256), "RS256": strings.ReplaceAll(encode(rsaKey), "\n", `\n`), "EdDSA": encode(edKey)} {
		text, err := signAssertion(key, "me", "https://issuer", now)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(text, ".")
		var head struct{ Alg string }
		var body struct {
			Iss, Sub, Aud, Jti string
			Iat, Exp           int64
		}
		decodeSegment(t, parts[0], &head)
		decodeSegment(t, parts[1], &body)
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil || head.Alg != alg || !verify[alg](parts[0]+"."+parts[1], signature) {
			t.Errorf("%s: header %+v, %v", alg, head, err)
		}
		if body.Iss != "me" || body.Sub != "me" || body.Aud != "https://issuer" || body.Jti == "" || body.Iat != now.Unix() || body.Exp != now.Unix()+300 {
			t.Errorf("%s: %+v", alg, body)
		}
	}
	for _, key := range []string{"", "s3cret", "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----"} {
		if _, err := signAssertion(key, "me", "x", now); err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "czNj") {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// Without a user, a server cannot widen a login: only the scopes of the settings are
// requested, also after they change.
func TestServersDoNotWidenUnattendedLogins(t *testing.T) {
	wider := `Bearer error="insufficient_scope", scope="admin"`
	for _, scopes := range [][]string{nil, {"read"}} {
		s := newSite(t, "--no-registration", "--client", "ci", "--secret", "s3cret", "--method", "client_secret_basic", "--scopes", "read admin")
		client := func(scopes []string) *Client {
			return New(settings.Server{Name: "test", URL: s.Resource, OAuth: &settings.OAuth{Grant: settings.GrantClientCredentials, ClientID: "ci", ClientSecret: "s3cret",
				Issuer: s.Issuer, Scopes: scopes}}, storeAt(s.dir), nil)
		}
		c := client(scopes)
		if _, err := c.Received(t.Context(), "", http.StatusUnauthorized, wanting(`Bearer scope="admin"`)); err != nil {
			t.Fatal(err)
		}
		token := held(t, c)
		if got := c.record.Token.Scopes; !slices.Equal(got, scopes) {
			t.Errorf("with %q in the settings it has %q", scopes, got)
		}
		again, err := c.Received(t.Context(), token, http.StatusForbidden, wanting(wider))
		if again || err == nil || !strings.Contains(err.Error(), "scope admin; if this login may have it, add it to oauth.scopes") || held(t, c) != token {
			t.Errorf("with %q: %v, %v", scopes, again, err)
		}
		if n := s.Count("token client_credentials"); n != 1 {
			t.Errorf("with %q: %d tokens were requested", scopes, n)
		}
		c = client([]string{"admin"})
		if again, err := c.Received(t.Context(), token, http.StatusForbidden, wanting(wider)); !again || err != nil {
			t.Errorf("with admin in the settings: %v, %v", again, err)
		}
		if got := c.record.Token.Scopes; !slices.Equal(got, []string{"admin"}) {
			t.Errorf("with admin in the settings it has %q", got)
		}
	}
}

func decodeSegment(t *testing.T, text string, into any) {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// With a corporate identity token, the identity provider issues an assertion,
// which is exchanged for an access token (MCP extension enterprise-managed
// authorization).
func TestAssertionOfAnIdentityProvider(t *testing.T) {
	var forms []url.Values
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	defer s.Close()
	document := func(path string, v map[string]any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	document("/.well-known/oauth-protected-resource/mcp", map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL + "/as"}})
	document("/.well-known/oauth-authorization-server/as", map[string]any{"issuer": s.URL + "/as", "token_endpoint": s.URL + "/as/token"})
	document("/idp/.well-known/openid-configuration", map[string]any{"issuer": s.URL + "/idp", "token_endpoint": s.URL + "/idp/token"})
	for path, answer := range map[string]string{
		"/idp/token": `{"access_token":"the-assertion","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}`,
		"/as/token":  `{"access_token":"the-token","token_type":"Bearer","expires_in":60}`,
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			if id, secret, ok := r.BasicAuth(); ok {
				r.PostForm.Set("basic", id+":"+secret)
			}
			forms = append(forms, r.PostForm)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		})
	}
	site := &site{dir: t.TempDir()}
	c := New(settings.Server{Name: "test", URL: s.URL + "/mcp", OAuth: &settings.OAuth{
		Grant: settings.GrantJWTBearer, ClientID: "me", ClientSecret: "s3cret", IDToken: "who-i-am", IDPIssuer: s.URL + "/idp", IDPClientID: "me-there", Issuer: s.URL + "/as", Scopes: []string{"a", "b"},
	}}, storeAt(site.dir), nil)
	again, err := c.Received(t.Context(), "", http.StatusUnauthorized, wanting(`Bearer scope="a b c"`))
	if err != nil || !again || held(t, c) != "the-token" {
		t.Fatal(again, err)
	}
	want := []url.Values{
		{"grant_type": {oauthex.GrantTypeTokenExchange}, "code": {""}, "requested_token_type": {"urn:ietf:params:oauth:token-type:id-jag"}, "audience": {s.URL + "/as"}, "resource": {s.URL + "/mcp"},
			"subject_token": {"who-i-am"}, "subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"}, "scope": {"a b"}, "client_id": {"me-there"}},
		{"grant_type": {grantJWTBearer}, "assertion": {"the-assertion"}, "resource": {s.URL + "/mcp"}, "scope": {"a b"}, "basic": {"me:s3cret"}},
	}
	if !slices.EqualFunc(forms, want, func(a, b url.Values) bool { return a.Encode() == b.Encode() }) {
		t.Errorf("asked\n%v\nwant\n%v", forms, want)
	}
}

// A stored login costs a connection one file read.
func BenchmarkStoredToken(b *testing.B) {
	store := storeAt(b.TempDir())
	server := settings.Server{Name: "test", URL: "https://mcp.example.com/mcp"}
	c := New(server, store, nil)
	err := c.update(b.Context(), func(*record) (*record, error) {
		return &record{TokenURL: "https://example.com/token", Token: token{Access: strings.Repeat("x", 1500), Refresh: "y"}}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := New(server, store, nil).Token(b.Context()); err != nil || len(got) != 1500 {
			b.Fatal(got, err)
		}
	}
}
