package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// An API has no say in its logins: the endpoints are those of the settings, whatever the
// authorization server calls itself, and without a token there is an error instead of a
// request. A login that another process makes counts at once.
func TestAPILogins(t *testing.T) {
	s := newSite(t, "--api", "--client", "me", "--secret", "s3cret", "--method", "client_secret_basic")
	u, err := url.Parse(s.Resource)
	if err != nil {
		t.Fatal(err)
	}
	client := func(o settings.OAuth) *Client {
		o.ClientID, o.ClientSecret = "me", "s3cret"
		return ForAPI(settings.API{Server: settings.Server{Name: "notes", OAuth: &o}, Spec: s.Resource + "/openapi.json?x=y"}, storeAt(s.dir), func(err error) { t.Error(err) })
	}
	endpoints := settings.OAuth{Grant: settings.GrantAuthorizationCode, AuthorizationURL: s.Issuer + "/authorize", TokenURL: strings.Replace(s.Issuer, "127.0.0.1", "localhost", 1) + "/token"}
	running := client(endpoints)
	if token, err := running.Token(t.Context()); token != "" || !errors.Is(err, registry.ErrNeedsLogin) || !strings.HasSuffix(err.Error(), "; run toolreg servers login notes") {
		t.Errorf("without a login: %q, %v", token, err)
	}
	got := s.login(t, client(endpoints))
	if want := "http://" + u.Host; got.Server != want || got.Resource != "" {
		t.Errorf("the login is to %q (resource %q), want %q", got.Server, got.Resource, want)
	}
	if token, err := running.Token(t.Context()); token == "" || err != nil {
		t.Errorf("after the login of another process: %q, %v", token, err)
	}
	if got := s.Count("metadata"); got != 0 {
		t.Errorf("%d requests for metadata, although the settings have the endpoints", got)
	}
	program := client(settings.OAuth{Grant: settings.GrantClientCredentials, Issuer: s.Issuer})
	if token, err := program.Token(t.Context()); token == "" || err != nil {
		t.Errorf("a program's token: %q, %v", token, err)
	}
	if again := program.Moved(t.Context()); again {
		t.Error("an API named another authorization server")
	}
}

// An assertion from a file or a command is read again when it is refused, because it is good for a time only.
func TestSecretsThatExpire(t *testing.T) {
	for name, tt := range map[string]struct {
		now    string
		failed error
		want   string // of the error; "" means a token
	}{
		"another":  {now: "second"},
		"the same": {now: "first", want: `it returned "invalid_grant"`},
		"none":     {failed: errors.New("no such file"), want: `it returned "invalid_grant", and its secrets cannot be read again: no such file`},
	} {
		t.Run(name, func(t *testing.T) {
			good := "first"
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("assertion") != good {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
					return
				}
				_, _ = w.Write([]byte(`{"access_token":"token-` + good + `","token_type":"Bearer","expires_in":60}`))
			}))
			defer s.Close()
			o := settings.OAuth{Grant: settings.GrantJWTBearer, ClientID: "me", Issuer: s.URL, TokenURL: s.URL + "/token", Assertion: "first"}
			c := New(settings.Server{Name: "test", URL: s.URL + "/mcp", OAuth: &o}, storeAt(t.TempDir()), nil)
			reads := 0
			c.Reread(func(context.Context) (*settings.OAuth, error) {
				reads++
				now := o
				now.Assertion = tt.now
				return &now, tt.failed
			})
			if again, err := c.Received(t.Context(), "", http.StatusUnauthorized, nil); err != nil || !again || reads != 0 {
				t.Fatalf("the first token: %v, %v, read again %d times", again, err, reads)
			}
			good = "second"
			c.now = func() time.Time { return time.Now().Add(time.Hour) }
			token, err := c.Token(t.Context())
			if tt.want == "" && (err != nil || token != "token-second") ||
				tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want)) {
				t.Errorf("got %q, %v", token, err)
			}
			if _, err := c.Token(t.Context()); tt.now == "first" && (err == nil || reads != 1) {
				t.Errorf("the same secrets were read %d times for two calls; %v", reads, err)
			}
		})
	}
}
