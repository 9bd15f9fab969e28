package serve

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/settings"
)

// organization is a server whose clients log in to an authority.
type organization struct {
	*mcptest.Authority
	server  *Server
	handler *HTTP
	oauth   *auth.OAuth
	set     settings.ServeOAuth
	url     string // of the server, without the path
	log     bytes.Buffer
}

// newOrganization serves the tools of a real server. flags are those of the authority.
func newOrganization(t *testing.T, scopes []settings.ToolScope, flags ...string) *organization {
	t.Helper()
	s := newSession(t, map[string]string{"m": ""})
	t.Cleanup(s.Close)
	return organizationOf(t, serverOf(t, s), scopes, flags...)
}

func organizationOf(t *testing.T, s *Server, scopes []settings.ToolScope, flags ...string) *organization {
	t.Helper()
	authority, err := mcptest.NewAuthority(append([]string{"--jwt", "ES256", "--person", "ada"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	o := &organization{Authority: authority, server: s}
	issuer, h := httptest.NewUnstartedServer(authority), httptest.NewUnstartedServer(nil)
	authority.Issuer, o.url = "http://"+issuer.Listener.Addr().String(), "http://"+h.Listener.Addr().String()
	o.set = settings.ServeOAuth{Issuer: settings.Entry{Value: authority.Issuer}, Audience: settings.Entry{Value: o.url + auth.Endpoint},
		Name: settings.Entry{Value: "sub"}, Groups: settings.Entry{Value: "groups"}, Scopes: scopes}
	if o.oauth, err = auth.NewOAuth(o.set, func(error) {}); err != nil {
		t.Fatal(err)
	}
	s.opts.Log = slog.New(slog.NewTextHandler(&o.log, nil)) // that of requests over HTTP
	o.handler = s.HTTP(HTTPOptions{OAuth: o.oauth, Loopback: true, LoginPage: writeLoginPage})
	h.Config.Handler = o.handler
	issuer.Start()
	h.Start()
	t.Cleanup(issuer.Close)
	t.Cleanup(h.Close)
	return o
}

func (o *organization) token(t *testing.T, scopes string, more map[string]any) string {
	t.Helper()
	token, err := o.Token(o.url+auth.Endpoint, strings.Fields(scopes), more)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// send sends a message and returns the status, the challenge and the body of the answer.
func (o *organization) send(t *testing.T, path, token, body string) (status int, challenge, answer string) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, o.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		session := &soaking{url: o.url + path, http: &http.Client{Transport: withToken(token)}, session: id}
		if err := session.end(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return resp.StatusCode, strings.ReplaceAll(resp.Header.Get("WWW-Authenticate"), o.url, "URL"), string(data)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// callOf returns a message that calls a tool.
func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// A client with an access token logs in to a server with any token of its user, at the address
// that the settings give the server.
func TestClientsOfAnOrganizationLogIn(t *testing.T) {
	a := newAccounts(t)
	s := newSession(t, map[string]string{"gh": a.Resource + ";login"})
	t.Cleanup(s.Close)
	o := organizationOf(t, serverOf(t, s), nil)
	a.url = o.url
	ada, eve := a.connect(t, "lovelace", o.token(t, "", nil), ""), a.connect(t, "eve", o.token(t, "", map[string]any{"sub": "eve"}), "")
	ada.token = o.token(t, "", map[string]any{"other": "token"})
	if got := ada.call(t, "gh__login") + " " + ada.call(t, "whoami"); !strings.HasPrefix(got, "Logged in to gh") || !strings.HasSuffix(got, " lovelace") {
		t.Errorf("the login: %s", got)
	}
	if got := eve.tools(t); got != "gh__login" {
		t.Errorf("another client: %s", got)
	}
	eve.declines.Store(true)
	eve.call(t, "gh__login")
	eve.token = ada.token // that of somebody else
	if got := eve.visit(*eve.address.Load()); got != "the form was refused: 403 Forbidden" {
		t.Errorf("with the token of another user: %s", got)
	}
}
