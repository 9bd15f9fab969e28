//go:build unix

package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

// accounts is a server to which each client logs in, with the authority of its accounts.
type accounts struct {
	*mcptest.Authority
	server  *Server
	session *engine.Session
	url     string
}

// newAccounts starts the server and its authority, which has these flags.
func newAccounts(t *testing.T, flags ...string) *accounts {
	t.Helper()
	authority, err := mcptest.NewAuthority(append([]string{"--users"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	authority.Issuer = serveUpstream(t, authority)
	authority.Resource = serveUpstream(t, authority.MCP()) + "/mcp"
	return &accounts{Authority: authority}
}

// serve serves the accounts by one process.
func (a *accounts) serve(t *testing.T) *accounts {
	t.Helper()
	a.session = newSession(t, map[string]string{"gh": a.Resource + ";login"})
	t.Cleanup(a.session.Close)
	a.server = serverOf(t, a.session)
	a.url = serveHandler(t, a.server.HTTP(a.options())).URL
	return a
}

// serveShared serves them by replicas with a store. Each request reaches another one.
func (a *accounts) serveShared(t *testing.T, replicas int) []*sharing {
	t.Helper()
	address := storetest.Start(t).URL()
	out := make([]*sharing, replicas)
	for i := range out {
		dir := t.TempDir()
		file := filepath.Join(dir, "s.json")
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers":{"gh":{"httpUrl":%q,"trust":true,"oauth":{"per":"client"}}},"serve":{"store":%q,"stateKey":%q}}`, a.Resource, address, stateKey), 0o600); err != nil {
			t.Fatal(err)
		}
		set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{file}, NoUser: true, Environ: environOf(dir)})
		if err != nil {
			t.Fatal(err)
		}
		from := sessionWith(t, dir, question.Asker{}, set, engine.Options{ClientLogins: true, Shared: true})
		from.Store.Limit = time.Minute // a busy machine may take longer than a use of the store may
		t.Cleanup(func() { from.Close(); from.Store.Close() })
		out[i] = sharingOf(t, a.options(), from, from.Store)
	}
	a.url = newBalancer(t, out).url
	return out
}

func (a *accounts) options() HTTPOptions {
	return HTTPOptions{Tokens: auth.NewTokens(map[string]string{"ada": aliceToken, "bob": bobToken}), Loopback: true, LoginPage: writeLoginPage}
}

func writeLoginPage(w io.Writer, p LoginPage) { fmt.Fprintf(w, "%+v", p) }

// user is a client whose user has a browser and an account.
type user struct {
	*mcp.ClientSession
	account   string
	token     string
	logins    atomic.Int32
	address   atomic.Pointer[string] // of the last one
	declines  atomic.Bool
	completed chan string // ids of logins of which the client was told
	updated   chan string // resources
	changed   chan string // lists
	visits    sync.WaitGroup
}

// connect connects a client of a revision with the token of a user, whose account is another
// one.
func (a *accounts) connect(t *testing.T, account, token, revision string) *user {
	t.Helper()
	u := &user{account: account, token: token, completed: make(chan string, 100), updated: make(chan string, 100), changed: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: account, Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			u.logins.Add(1)
			u.address.Store(&r.Params.URL)
			if u.declines.Load() {
				return &mcp.ElicitResult{Action: "decline"}, nil
			}
			u.visits.Go(func() {
				if answer := u.visit(r.Params.URL); !strings.Contains(answer, "You are logged in to gh") {
					t.Errorf("the browser shows %s", answer)
				}
			})
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
		ElicitationCompleteHandler: func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
			u.completed <- r.Params.ElicitationID
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { u.updated <- r.Params.URI },
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { u.changed <- "tools" },
	})
	var err error
	u.ClientSession, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: a.url + "/mcp", HTTPClient: &http.Client{Transport: withToken(token)}, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = u.Close()
		u.visits.Wait()
	})
	return u
}

// visit opens the address of a login, enters the token, logs in to the account and returns the
// last page.
func (u *user) visit(address string) string {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err.Error()
	}
	browser := &http.Client{Jar: jar}
	at, err := url.Parse(address)
	if err != nil {
		return err.Error()
	}
	form, err := http.NewRequest(http.MethodPost, address, strings.NewReader(url.Values{"token": {u.token}}.Encode()))
	if err != nil {
		return err.Error()
	}
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	form.Header.Set("Origin", "http://"+at.Host)
	first, err := browser.Do(form)
	if err != nil {
		return err.Error()
	}
	_ = first.Body.Close()
	_, next, _ := strings.Cut(first.Header.Get("Refresh"), "url=")
	if at, err = url.Parse(next); err != nil || next == "" {
		return "the form was refused: " + first.Status
	}
	jar.SetCookies(at, []*http.Cookie{{Name: "user", Value: u.account}})
	last, err := browser.Get(next)
	if err != nil {
		return err.Error()
	}
	defer last.Body.Close()
	text, err := io.ReadAll(last.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (u *user) call(t *testing.T, tool string) string {
	t.Helper()
	result, err := u.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			out.WriteString(text.Text)
		}
	}
	return out.String()
}

func (u *user) tools(t *testing.T) string {
	t.Helper()
	list, err := u.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		if builtin.Named(tool.Name) == "" {
			names = append(names, tool.Name)
		}
	}
	return strings.Join(names, " ")
}

// A client that can send its user to a page asks them to log in when its tool for that is called,
// and again in the middle of a call when the login is over. Another client sees nothing of it.
func TestClientsLogIn(t *testing.T) {
	for _, revision := range []string{"2025-11-25", ""} {
		t.Run(revision, func(t *testing.T) {
			a := newAccounts(t, "--no-refresh").serve(t)
			ada, bob := a.connect(t, "lovelace", aliceToken, revision), a.connect(t, "bob", bobToken, revision)
			if got := ada.tools(t); got != "gh__login" {
				t.Errorf("before the login: %s", got)
			}
			ada.declines.Store(true)
			if got := ada.call(t, "gh__login"); !strings.Contains(got, "the user did not agree to (decline)") {
				t.Errorf("declined: %s", got)
			}
			ada.declines.Store(false)
			if got := ada.call(t, "gh__login"); got != "Logged in to gh. List the tools again to see those of this server." {
				t.Errorf("the login: %s", got)
			}
			if revision != "" {
				await(t, ada.completed)
				await(t, ada.changed)
			}
			if got := ada.tools(t); got != "mail of_lovelace whoami" {
				t.Errorf("after the login: %s", got)
			}
			if got := ada.call(t, "whoami"); got != "lovelace" {
				t.Errorf("whoami: %s", got)
			}
			if got := bob.tools(t) + ": " + bob.call(t, "whoami"); !strings.HasPrefix(got, "gh__login: ") || strings.Contains(got, "lovelace") {
				t.Errorf("another client: %s", got)
			}
			before := ada.logins.Load()
			a.Expire()
			if got := ada.call(t, "whoami"); got != "lovelace" || ada.logins.Load() != before+1 {
				t.Errorf("after the login was over: %s, asked %d times", got, ada.logins.Load()-before)
			}
			if bob.logins.Load() != 0 {
				t.Error("another client was asked")
			}
		})
	}
}

// A server that could not be reached before can be logged in to when it is there.
func TestLoginToALateServer(t *testing.T) {
	a := newAccounts(t)
	var there atomic.Bool
	front := serveUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !there.Load() {
			http.Error(w, "later", http.StatusBadGateway)
			return
		}
		a.MCP().ServeHTTP(w, r)
	}))
	a.Resource = front + "/mcp"
	a.serve(t)
	ada := a.connect(t, "lovelace", aliceToken, "")
	if got := ada.tools(t); got != "" {
		t.Errorf("before: %s", got)
	}
	there.Store(true)
	waitFor(t, func() bool { return ada.tools(t) == "gh__login" })
}

// Only a browser that has the token of the client goes on with a login, and only it completes it.
func TestPagesOfLogins(t *testing.T) {
	a := newAccounts(t).serve(t)
	ada := a.connect(t, "lovelace", aliceToken, "")
	ada.declines.Store(true)
	ada.call(t, "gh__login")
	address, next := *ada.address.Load(), ""
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	with, without, guessing := &http.Client{Jar: jar}, &http.Client{}, &http.Client{Jar: wrong}
	visit := func(browser *http.Client, method, address, origin, token string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		resp, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, to, ok := strings.Cut(resp.Header.Get("Refresh"), "url="); ok {
			next = to
		}
		return resp.Status + " " + string(text)
	}
	for _, tt := range []struct{ what, got, want string }{
		{"the form", visit(with, http.MethodGet, address, "", ""), "200 OK {Heading:Log in to gh"},
		{"no origin", visit(with, http.MethodPost, address, "", aliceToken), "403 Forbidden forbidden"},
		{"a page of another site", visit(with, http.MethodPost, address, "http://evil.example", aliceToken), "403 Forbidden forbidden"},
		{"another client's token", visit(with, http.MethodPost, address, a.url, bobToken), "403 Forbidden {Heading:Log in to gh"},
		{"no login yet", visit(with, http.MethodGet, a.url+"/login/callback?code=c&state="+strings.TrimPrefix(address, a.url+"/login/")+".x", "", ""), "403 Forbidden {Heading:This login was begun elsewhere"},
		{"the token", visit(with, http.MethodPost, address, a.url, aliceToken), "200 OK {Heading:Log in to gh"},
	} {
		if !strings.HasPrefix(tt.got, tt.want) {
			t.Errorf("%s: %s", tt.what, tt.got)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, next, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	back := resp.Header.Get("Location")
	at, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	wrong.SetCookies(at, []*http.Cookie{{Name: loginCookie(strings.TrimPrefix(address, a.url+"/login/")), Value: "guessed"}})
	for _, tt := range []struct{ what, got, want string }{
		{"another browser", visit(without, http.MethodGet, back, "", ""), "403 Forbidden {Heading:This login was begun elsewhere"},
		{"another cookie", visit(guessing, http.MethodGet, back, "", ""), "403 Forbidden {Heading:This login was begun elsewhere"},
		{"another state", visit(with, http.MethodGet, strings.Replace(back, "state=", "state="+strings.TrimPrefix(address, a.url+"/login/")+".", 1), "", ""), "422 Unprocessable Entity {Heading:The login failed"},
		{"the answer", visit(with, http.MethodGet, back, "", ""), "200 OK {Heading:You are logged in to gh"},
		{"again", visit(with, http.MethodGet, back, "", ""), "404 Not Found {Heading:There is no such login"},
	} {
		if !strings.HasPrefix(tt.got, tt.want) {
			t.Errorf("%s: %s", tt.what, tt.got)
		}
	}
}

// A client cannot fill the memory with logins that it does not complete.
func TestLoginsThatWait(t *testing.T) {
	a := newAccounts(t).serve(t)
	ada, bob := a.connect(t, "lovelace", aliceToken, ""), a.connect(t, "bob", bobToken, "")
	ada.declines.Store(true)
	for range maxLoginsOwn {
		ada.call(t, "gh__login")
	}
	if got := ada.call(t, "gh__login"); !strings.Contains(got, errManyLogins.Error()) {
		t.Errorf("one too many: %s", got)
	}
	if got := bob.call(t, "gh__login"); !strings.HasPrefix(got, "Logged in") {
		t.Errorf("another client: %s", got)
	}
}

// The address of a request counts only if nothing but this process can have it.
func TestBaseOf(t *testing.T) {
	for _, tt := range []struct {
		host     string
		loopback bool
		want     string
	}{
		{"127.0.0.1:80", true, "http://127.0.0.1:80"},
		{"localhost:80", true, "http://localhost:80"},
		{"[::ffff:127.0.0.1]:80", true, "http://[::ffff:127.0.0.1]:80"},
		{"localhost:81", true, ""},
		{"127.0.0.2:80", true, ""}, // where another program may listen
		{"[::1]:80", true, ""},
		{"localhost", true, ""},
		{"tools.example.com:80", false, ""},
	} {
		e := &endpoint{loopback: tt.loopback}
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
		r := (&http.Request{Host: tt.host}).WithContext(ctx)
		if got := e.baseOf(r); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// Where browsers reach the server may be in the settings.
func TestLoginsAtTheAddressOfTheSettings(t *testing.T) {
	for redirect, want := range map[string]string{
		"https://tools.example.com/a/login/callback": "https://tools.example.com/a/login/",
		"https://tools.example.com/callback":         "",
	} {
		a := newAccounts(t)
		s := newSession(t, map[string]string{"gh": a.Resource + ";login=" + redirect})
		t.Cleanup(s.Close)
		a.url = serveHandler(t, serverOf(t, s).HTTP(a.options())).URL
		ada := a.connect(t, "lovelace", aliceToken, "")
		ada.declines.Store(true)
		got := ada.call(t, "gh__login")
		if address := ada.address.Load(); want == "" {
			if address != nil || !strings.Contains(got, "oauth.redirectUri in its settings is not an address to which browsers can return; set it to https://HOST/login/callback") {
				t.Errorf("%s: %s", redirect, got)
			}
		} else if address == nil || !strings.HasPrefix(*address, want) {
			t.Errorf("%s: %s", redirect, got)
		}
	}
}

// Two clients have a resource of the same name. Each hears of its own.
func TestResourcesOfAccounts(t *testing.T) {
	a := newAccounts(t).serve(t)
	users := []*user{a.connect(t, "lovelace", aliceToken, "2025-11-25"), a.connect(t, "bob", bobToken, "2025-11-25")}
	for _, u := range users {
		u.call(t, "gh__login")
		if err := u.Subscribe(t.Context(), &mcp.SubscribeParams{URI: mcptest.UserInbox}); err != nil {
			t.Fatal(err)
		}
	}
	for i, u := range users {
		u.call(t, "mail")
		await(t, u.updated)
		if other := users[1-i]; len(other.updated) > 0 {
			t.Errorf("%s hears of the mail of %s", other.account, u.account)
		}
	}
	if err := users[0].Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: mcptest.UserInbox}); err != nil {
		t.Fatal(err)
	}
	users[0].call(t, "mail")
	users[1].call(t, "mail")
	await(t, users[1].updated)
	if len(users[0].updated) > 0 {
		t.Error("a client hears of what it has unsubscribed from")
	}
}

// A client hears of a change of the lists that it is offered, and of no other one's.
func TestChangesOfAccounts(t *testing.T) {
	a := newAccounts(t).serve(t)
	ada, bob := a.connect(t, "lovelace", aliceToken, "2025-11-25"), a.connect(t, "bob", bobToken, "2025-11-25")
	ada.tools(t)
	bob.tools(t)
	ada.call(t, "gh__login")
	await(t, ada.changed)
	bob.call(t, "gh__login")
	await(t, bob.changed)
	ada.call(t, "mail")
	bob.call(t, "mail")
	if len(ada.changed)+len(bob.changed) > 0 {
		t.Errorf("%d more notifications to the first client, %d to the other one", len(ada.changed), len(bob.changed))
	}
}

// When the settings are read again, a server that is the same goes on with the logins of clients,
// and still nothing that it listed for one is listed for another.
func TestReloadKeepsLogins(t *testing.T) {
	a := newAccounts(t).serve(t)
	ada := a.connect(t, "lovelace", aliceToken, "2025-11-25")
	ada.call(t, "gh__login")
	ctx := caller.With(t.Context(), &caller.Caller{Token: "ada"})
	before := a.session.ServersFor(ctx).Of("gh__")
	next := sessionWith(t, a.session.Settings.ProjectRoot, question.Asker{}, a.session.Settings, engine.Options{ClientLogins: true, Earlier: a.session})
	t.Cleanup(next.Close)
	if err := a.server.Load(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if now := next.ServersFor(ctx).Of("gh__"); now != before {
		t.Error("the server was reached anew")
	}
	if got := ada.call(t, "whoami"); got != "lovelace" {
		t.Errorf("whoami: %s", got)
	}
	if got := a.connect(t, "bob", bobToken, "").tools(t); got != "gh__login" {
		t.Errorf("another client gets what was listed before: %s", got)
	}
}

// What belongs to a client that is away ends, and is there again with its next request.
func TestAbsentClientsAreForgotten(t *testing.T) {
	a := newAccounts(t)
	a.session = newSession(t, map[string]string{"gh": a.Resource + ";login"})
	t.Cleanup(a.session.Close)
	a.server = serverFrom(t, a.session, Options{Limits: Limits{Idle: 50 * time.Millisecond}})
	a.url = serveHandler(t, a.server.HTTP(a.options())).URL
	ada := a.connect(t, "lovelace", aliceToken, "")
	ada.call(t, "gh__login")
	waitFor(t, func() bool { return len(a.server.offers.All()) == 1 })
	ctx := caller.With(t.Context(), &caller.Caller{Token: "ada"})
	before := a.session.ServersFor(ctx).Of("gh__")
	if got := ada.call(t, "whoami"); got != "lovelace" {
		t.Errorf("whoami: %s", got)
	}
	waitFor(t, func() bool { return len(a.server.offers.All()) == 1 && a.session.ServersFor(ctx).Of("gh__") != before })
}

// With a store, a login that one replica begins is completed at another, and all use it. One of
// them renews it, because a token for that works once.
func TestReplicasShareLogins(t *testing.T) {
	for _, revision := range []string{"2025-11-25", ""} {
		t.Run(revision, func(t *testing.T) {
			a := newAccounts(t)
			a.serveShared(t, 3)
			ada, bob := a.connect(t, "lovelace", aliceToken, revision), a.connect(t, "bob", bobToken, revision)
			if got := ada.call(t, "gh__login"); !strings.HasPrefix(got, "Logged in to gh") {
				t.Fatalf("the login: %s", got)
			}
			for range 4 {
				if got := ada.call(t, "whoami"); got != "lovelace" {
					t.Errorf("whoami: %s", got)
				}
			}
			a.Expire()
			var calls sync.WaitGroup
			for range 6 {
				calls.Go(func() {
					if got := ada.call(t, "whoami"); got != "lovelace" {
						t.Errorf("whoami while the login is renewed: %s", got)
					}
				})
			}
			calls.Wait()
			if ada.logins.Load() != 1 || bob.logins.Load() != 0 {
				t.Errorf("asked %d and %d times", ada.logins.Load(), bob.logins.Load())
			}
			if got := bob.call(t, "whoami"); strings.Contains(got, "lovelace") {
				t.Errorf("another client: %s", got)
			}
		})
	}
}
