package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

func TestChallenges(t *testing.T) {
	tool := func(tool, scope string) settings.ToolScope { return settings.ToolScope{Tool: tool, Scope: scope} }
	list := []settings.ToolScope{tool("*", "a"), tool("*", "b")}
	byTool := []settings.ToolScope{tool("*", "a"), tool("m__ech*", "b"), tool("gone", "c")}
	const metadata = `resource_metadata="URL/.well-known/oauth-protected-resource/mcp"`
	tests := []struct {
		name          string
		scopes        []settings.ToolScope
		has           string // scopes of the token; "-" = there is none
		path, message string
		status        int
		challenge     string
	}{
		{"no token", list, "-", "/mcp", initialize, 401, `Bearer scope="a b", ` + metadata},
		{"no token, no scopes", nil, "-", "/mcp", initialize, 401, `Bearer ` + metadata},
		{"no token for a profile", list, "-", "/mcp/x", initialize, 401, `Bearer scope="a b", resource_metadata="URL/.well-known/oauth-protected-resource/mcp/x"`},
		{"too little", list, "a", "/mcp", initialize, 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a b", scope="a b", ` + metadata},
		{"other scopes", list, "ab A", "/mcp", initialize, 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a b", scope="a b", ` + metadata},
		{"enough", list, "b a", "/mcp", initialize, 200, ""},
		{"no scopes are needed", nil, "", "/mcp", initialize, 200, ""},
		{"too little for all", byTool, "b", "/mcp", initialize, 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a b", scope="a b", ` + metadata},
		{"enough but for some tools", byTool, "a", "/mcp", initialize, 200, ""},
		{"too little for the tool", byTool, "a", "/mcp", callOf("echo", "{}"), 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a b", scope="a b", ` + metadata},
		{"too little for the tool by another name", byTool, "a c", "/mcp", callOf("m__echo", "{}"), 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a b c", scope="a b c", ` + metadata},
		{"too little for one of two messages", byTool, "a", "/mcp", "[" + callOf("sum", "{}") + "," + callOf("echo", "{}") + "]", 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a b", scope="a b", ` + metadata},
		{"a tool that is not there", byTool, "a", "/mcp", callOf("gone", "{}"), 403, `Bearer error="insufficient_scope", error_description="the request needs the scopes a c", scope="a c", ` + metadata},
	}
	s := newSession(t, map[string]string{"m": ""})
	t.Cleanup(s.Close)
	server := serverOf(t, s)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := organizationOf(t, server, test.scopes)
			token := ""
			if test.has != "-" {
				token = o.token(t, test.has, nil)
			}
			status, challenge, answer := o.send(t, test.path, token, test.message)
			if status != test.status || challenge != test.challenge {
				t.Errorf("status %d, challenge %s\n%s", status, challenge, answer)
			}
			refused := strings.Contains(o.log.String(), "level=WARN") && strings.Contains(o.log.String(), fmt.Sprint("status=", test.status))
			if refused != (test.status != 200) || token != "" && strings.Contains(o.log.String(), token[:20]) {
				t.Errorf("logged %s", &o.log)
			}
		})
	}
}

func TestRefusedCallers(t *testing.T) {
	o := newOrganization(t, nil)
	for name, want := range map[string]string{"ada": "", "stdio": "is the name of clients without a token", "local": "is the name of clients without a token", "": "is not a name"} {
		status, challenge, _ := o.send(t, "/mcp", o.token(t, "", map[string]any{"sub": name}), initialize)
		if (want == "") != (status == 200) || !strings.Contains(challenge, want) {
			t.Errorf("%q: status %d, challenge %s", name, status, challenge)
		}
	}
	status, challenge, _ := o.send(t, "/mcp", "a-token-of-a-token-file", initialize)
	if want := `Bearer error="invalid_token", error_description="the token is not a JSON Web Token that is signed", resource_metadata="URL/.well-known/oauth-protected-resource/mcp"`; status != 401 || challenge != want {
		t.Errorf("status %d, challenge %s", status, challenge)
	}
}

func TestResourceMetadata(t *testing.T) {
	o := newOrganization(t, []settings.ToolScope{{Tool: "*", Scope: "a"}, {Tool: "x", Scope: "b"}})
	for path, resource := range map[string]string{"": "/mcp", "/mcp": "/mcp", "/mcp/reader": "/mcp/reader", "/mcp/": "/mcp", "/mc": "", "/mcpx": "", "/": ""} {
		status, _, answer := o.send(t, "/.well-known/oauth-protected-resource"+path, "", "")
		if resource == "" {
			if status != http.StatusNotFound {
				t.Errorf("%s: status %d", path, status)
			}
			continue
		}
		want := map[string]any{"resource": o.url + resource, "authorization_servers": []any{o.Issuer}, "scopes_supported": []any{"a"}, "bearer_methods_supported": []any{"header"}, "resource_name": "toolreg"}
		var got map[string]any
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK {
			t.Errorf("%s: status %d, %v", path, status, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if status, _, _ := o.send(t, "/.well-known/oauth-protected-resource", "", "{}"); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", status)
	}
	// Behind a proxy, the path of the endpoint may be another.
	o.set.Audience.Value = "https://tools.example/all/mcp"
	if err := o.oauth.Change(o.set); err != nil {
		t.Fatal(err)
	}
	if status, _, answer := o.send(t, "/.well-known/oauth-protected-resource/all/mcp", "", ""); status != http.StatusOK || !strings.Contains(answer, `"resource":"https://tools.example/all/mcp"`) {
		t.Errorf("status %d, %s", status, answer)
	}
	if status, _, answer := o.send(t, "/.well-known/oauth-protected-resource/all/mcp/reader", "", ""); status != http.StatusOK || !strings.Contains(answer, `"resource":"https://tools.example/all/mcp/reader"`) {
		t.Errorf("status %d, %s", status, answer)
	}
	if _, challenge, _ := o.send(t, "/mcp", "", initialize); !strings.Contains(challenge, `"https://tools.example/.well-known/oauth-protected-resource/all/mcp"`) {
		t.Errorf("challenge %s", challenge)
	}
}

// A token for the address of a profile is good for that alone.
func TestAudienceOfAProfile(t *testing.T) {
	o := newOrganization(t, nil)
	token := o.token(t, "", map[string]any{"aud": o.url + auth.Endpoint + "/reader"})
	for path, want := range map[string]int{"/mcp": 401, "/mcp/other": 401, "/mcp/reader": 404} { // there is no such profile
		if status, _, answer := o.send(t, path, token, initialize); status != want {
			t.Errorf("%s: status %d, %s", path, status, answer)
		}
	}
}

// While the issuer is away at the start, requests get 503; afterwards they are answered.
func TestIssuerIsAway(t *testing.T) {
	o := newOrganization(t, nil, "--away")
	following, stop := context.WithCancel(t.Context())
	defer stop()
	go o.handler.FollowTokens(following)
	token := o.token(t, "", nil)
	if status, challenge, answer := o.send(t, "/mcp", token, initialize); status != http.StatusServiceUnavailable || challenge != "" || !strings.Contains(answer, "keys of the issuer cannot be read") {
		t.Errorf("status %d, challenge %s, %s", status, challenge, answer)
	}
	if status, _, _ := o.send(t, "/mcp", "", initialize); status != http.StatusUnauthorized {
		t.Errorf("without a token: status %d", status)
	}
	resp, err := http.Get(o.Issuer + "/back")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	waitFor(t, func() bool {
		status, _, _ := o.send(t, "/mcp", token, initialize)
		return status == http.StatusOK
	})
}

// When a token is not accepted any more, its streams, sessions and calls end within two seconds;
// a session goes on with the next token.
func TestExpiredTokensEndWhatRuns(t *testing.T) {
	t.Parallel() // it waits for the time to pass
	o := newOrganization(t, nil)
	following, stop := context.WithCancel(t.Context())
	defer stop()
	go o.handler.FollowTokens(following)
	end := time.Now().Add(10 * time.Second) // enough to begin on a busy machine
	soon := o.token(t, "", map[string]any{"exp": end.Add(-time.Minute).Unix()})
	client := func(token, revision string) *soaking {
		c := &soaking{url: o.url + auth.Endpoint, http: &http.Client{Transport: withToken(token)}, revision: revision}
		if err := c.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	old, modern, renewed, other := client(soon, "2025-11-25"), client(soon, wire.FirstModern), client(soon, "2025-11-25"), client(o.token(t, "", nil), "2025-11-25")
	renewed.http = &http.Client{Transport: withToken(o.token(t, "", nil))}
	if err := renewed.call(t.Context(), "echo", map[string]any{"text": "hello"}); err != nil {
		t.Fatal(err)
	}
	ended := openStreams(t, old, modern)
	stays := openStream(t, other, http.MethodPost, slowCall)
	for range 3 {
		if err := await(t, ended); err == nil {
			t.Error("a stream of an expired token continued")
		}
	}
	if late := time.Since(end); revokeEvery > time.Second || late > 10*time.Second { // a busy machine is slow too
		t.Errorf("they ended after %s, and tokens are checked every %s", late, revokeEvery)
	}
	waitFor(t, func() bool { return o.server.running() == 1 && sum(o.server.sessions.Counts()) == 2 })
	if err := renewed.call(t.Context(), "echo", map[string]any{"text": "hello"}); err != nil {
		t.Errorf("the session with the next token: %v", err)
	}
	_ = stays.Body.Close()
	if err := errors.Join(renewed.end(t.Context()), other.end(t.Context())); err != nil {
		t.Error(err)
	}
}

// Changed settings end what runs with tokens that they do not accept.
func TestChangedOAuth(t *testing.T) {
	o := newOrganization(t, nil)
	following, stop := context.WithCancel(t.Context())
	defer stop()
	go o.handler.FollowTokens(following)
	c := &soaking{url: o.url + auth.Endpoint, http: &http.Client{Transport: withToken(o.token(t, "", nil))}, revision: "2025-11-25"}
	if err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp := openStream(t, c, http.MethodGet, "")
	o.set.Scopes = []settings.ToolScope{{Tool: "*", Scope: "a"}}
	if err := o.oauth.Change(o.set); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := o.send(t, "/mcp", o.token(t, "", nil), initialize); status != http.StatusForbidden {
		t.Errorf("status %d", status)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString(0); err == nil {
		t.Error("the stream continued")
	}
	waitFor(t, func() bool { return sum(o.server.sessions.Counts()) == 0 })
	// A mistake changes nothing.
	wrong := o.set
	wrong.Issuer.Value, wrong.Scopes = "http://login.example", nil
	if err := o.oauth.Change(wrong); err == nil {
		t.Error("an issuer over http was accepted")
	}
	if status, _, _ := o.send(t, "/mcp", o.token(t, "", nil), initialize); status != http.StatusForbidden {
		t.Errorf("status %d", status)
	}
	if status, _, _ := o.send(t, "/mcp", o.token(t, "a", nil), initialize); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}

// A request that arrives at another replica than its session goes on there with its token, and
// can call what the scopes of the token permit.
func TestRelayedAccessTokens(t *testing.T) {
	t.Parallel() // it waits for the time to pass
	o := newOrganization(t, nil)
	following, stop := context.WithCancel(t.Context())
	defer stop()
	redis := storetest.Start(t).URL()
	replica := func(scopes ...settings.ToolScope) *sharing {
		set := o.set
		set.Scopes = scopes
		oauth, err := auth.NewOAuth(set, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		r := newSharingReplica(t, HTTPOptions{OAuth: oauth}, map[string]string{"m": ""}, redis)
		go r.handler.FollowTokens(following)
		return r
	}
	here, there := replica(), replica(settings.ToolScope{Tool: "slow", Scope: "a"}, settings.ToolScope{Tool: "echo", Scope: "b"})
	c := &soaking{url: there.URL + auth.Endpoint, http: &http.Client{Transport: withToken(o.token(t, "a", nil))}, revision: "2025-11-25"}
	if err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.url = here.URL + auth.Endpoint
	if err := c.call(t.Context(), "slow", map[string]any{"seconds": 3}); err != nil { // tokens are checked every second
		t.Error(err)
	}
	if err := c.call(t.Context(), "echo", map[string]any{"text": "hello"}); err == nil || !strings.Contains(err.Error(), "lacks the scope") {
		t.Errorf("a call without its scope: %v", err)
	}
	if err := c.end(t.Context()); err != nil {
		t.Error(err)
	}
}

// A tool that is reached through call_tool needs its scope too, and the caller has the groups of
// the token.
func TestScopesOfInnerCalls(t *testing.T) {
	s := newSession(t, map[string]string{"m": ""})
	t.Cleanup(s.Close)
	server := New(Options{Whole: offer.Profile{Select: func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
		reg, err := s.Tools.All(ctx)
		if err != nil {
			return nil, nil, err
		}
		found, err := s.Offers.Reaching(ctx, reg, func(*registry.Definition) bool { return false })
		return reg, found, err
	}}})
	t.Cleanup(server.Wait)
	if err := server.Load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	o := organizationOf(t, server, []settings.ToolScope{{Tool: "echo", Scope: "b"}})
	for name, want := range map[string]int{"echo": 403, "m__echo": 403, "sum": 400} { // it is then refused for want of a session
		if status, _, answer := o.send(t, "/mcp", o.token(t, "", nil), callOf("call_tool", `{"name":"`+name+`","params":{}}`)); status != want {
			t.Errorf("%s: status %d, %s", name, status, answer)
		}
	}
}

// The official Go SDK's client logs in by what the server says, and again for a tool that needs
// more.
func TestOfficialClientLogsIn(t *testing.T) {
	o := newOrganization(t, []settings.ToolScope{{Tool: "*", Scope: "use"}, {Tool: "echo", Scope: "echo"}}, "--groups", "staff")
	const back = "http://127.0.0.1:1/callback"
	var asked []string
	login, err := sdkauth.NewAuthorizationCodeHandler(&sdkauth.AuthorizationCodeHandlerConfig{RedirectURL: back,
		DynamicClientRegistrationConfig: &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{back}, TokenEndpointAuthMethod: "none", GrantTypes: []string{"authorization_code", "refresh_token"}}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
			if err != nil {
				return nil, err
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			_ = resp.Body.Close()
			to, err := url.Parse(resp.Header.Get("Location"))
			if err != nil {
				return nil, err
			}
			scopes := strings.Fields(r.URL.Query().Get("scope"))
			slices.Sort(scopes)
			asked = append(asked, strings.Join(scopes, " "))
			q := to.Query()
			return &sdkauth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: o.url + auth.Endpoint, OAuthHandler: login, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
	if err != nil || result.IsError {
		t.Fatalf("%v %+v", err, result)
	}
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"echo use", "use"}, asked); diff != "" {
		t.Error(diff)
	}
}
