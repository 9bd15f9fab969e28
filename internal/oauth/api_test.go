package oauth

import (
	"errors"
	"net/url"
	"strings"
	"testing"

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
