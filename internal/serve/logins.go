package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/timing"
)

const (
	// loginPath is the path below which users of clients log in to servers.
	loginPath = "/login/"
	// loginReturn is the path to which browsers return.
	loginReturn = loginPath + "callback"
	// loginTime is how long a login may take.
	loginTime = 10 * time.Minute
	// loginPoll is how often a call checks whether its user has logged in.
	loginPoll = 500 * time.Millisecond
	// maxLogins is how many logins may wait for browsers, and maxLoginsOwn how many of one client.
	maxLogins    = 1000
	maxLoginsOwn = 20
	loginKind    = "login"
)

// login is a client's login to a server (oauth.per: client) that waits for a browser. It contains
// secrets.
type login struct {
	Client string    `json:"client"`
	Server string    `json:"server"`
	Base   string    `json:"base"` // of this server's URLs
	Until  time.Time `json:"until"`
	// Browser is the hash of the cookie of the browser that has presented the client's token; zero
	// if none has.
	Browser auth.Hash `json:"browser"`
	Pending []byte    `json:"pending,omitempty"` // see [sources.Connections.BeginLogin]
	Done    bool      `json:"done,omitempty"`
	Replica string    `json:"replica,omitempty"` // the replica where it was completed
}

// logins holds the logins that wait for browsers: in memory or, with a store, where all replicas
// see them. It is safe for concurrent use.
type logins struct {
	offers  *current.Offers
	retries *current.Retries
	store   *store.Store // if they are not in memory
	replica string       // the ID of this one; empty without a store

	mu   sync.Mutex
	byID map[string]login
}

var errManyLogins = errors.New("too many logins wait for a browser; try again later")

// put stores a login until it expires.
func (l *logins) put(ctx context.Context, id string, one login) error {
	if l.store != nil {
		data, err := json.Marshal(one)
		if err != nil {
			return err
		}
		return l.store.Put(ctx, loginKind, id, data, time.Until(one.Until))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own := 0
	for id, other := range l.byID {
		if time.Now().After(other.Until) {
			delete(l.byID, id)
		} else if other.Client == one.Client {
			own++
		}
	}
	if _, known := l.byID[id]; !known && (own >= maxLoginsOwn || len(l.byID) >= maxLogins) {
		return errManyLogins
	}
	l.byID[id] = one
	return nil
}

// find returns a login; ok is false if there is none.
func (l *logins) find(ctx context.Context, id string) (one login, ok bool, err error) {
	if l.store != nil {
		v, err := l.store.Get(ctx, loginKind, id)
		if err != nil || !v.Exists() || json.Unmarshal(v.Data, &one) != nil {
			return login{}, false, err
		}
		return one, time.Now().Before(one.Until), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok = l.byID[id]
	return one, ok && time.Now().Before(one.Until), nil
}

// LoginPage is a page of a login.
type LoginPage struct {
	Heading, Text string
	// Action is the path to which a form posts a field "token"; "" means that there is no form.
	// Hint says which token to enter, and Wrong why it is asked for again.
	Action, Hint, Wrong string
	// Link is where to continue. It may be empty.
	Link string
}

type loginPages struct {
	entry
	logins *logins
	write  func(io.Writer, LoginPage)
}

func (l *loginPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w)
	id := strings.TrimPrefix(r.URL.Path, loginPath)
	state := r.URL.Query().Get("state")
	if r.URL.Path == loginReturn {
		id, _, _ = strings.Cut(state, ".")
	}
	one, ok, err := l.logins.find(r.Context(), id)
	switch {
	case err != nil:
		transport.Refuse(w, err)
	case !ok || one.Done:
		l.page(w, http.StatusNotFound,
			LoginPage{Heading: "There is no such login", Text: "It was completed, took too long, or was never begun. " +
				"Go back to your program and try again."})
	case r.URL.Path == loginReturn && r.Method == http.MethodGet:
		l.finish(w, r, id, one)
	case r.Method == http.MethodGet:
		l.page(w, http.StatusOK, one.form(r.URL.Path, ""))
	case r.Method != http.MethodPost || r.Header.Get("Origin") == "": // of the same origin; see checkOrigin
		l.refuse(w, r, forbidden("only the login page can continue the login"))
	default:
		l.begin(w, r, id, one)
	}
}

// form returns the page that asks for the client's token.
func (l login) form(path, wrong string) LoginPage {
	return LoginPage{
		Heading: "Log in to " + l.Server, Action: path, Wrong: wrong,
		Text: fmt.Sprintf("toolreg will use this login only for calls of %s.", l.Client),
		Hint: fmt.Sprintf("The token with which %s uses this server.", l.Client),
	}
}

// begin checks that the browser has the client's token, and redirects it to the authorization
// server.
func (l *loginPages) begin(w http.ResponseWriter, r *http.Request, id string, one login) {
	from, no := l.posted(w, r)
	if no != nil || from.Name != one.Client {
		wrong := "This is not the token of " + one.Client + "."
		if no != nil && no.Status == http.StatusServiceUnavailable {
			wrong = issuerAway
		}
		l.log.Warn("login refused: another token", "server", one.Server, "caller", one.Client, "from", r.RemoteAddr)
		l.page(w, http.StatusForbidden, one.form(r.URL.Path, wrong))
		return
	}
	var address string
	cookie := rand.Text()
	err := l.logins.offers.Current(func(session *engine.Session, _ *registry.Registry) (err error) {
		address, one.Pending, err = session.Connections.BeginLogin(r.Context(),
			one.Server, one.Client, one.Base+loginReturn, id+".")
		return err
	})
	if err == nil {
		one.Browser = auth.HashOf(cookie)
		err = l.logins.put(r.Context(), id, one)
	}
	if err != nil {
		l.log.Warn("login failed", "server", one.Server, "caller", one.Client, "error", err)
		l.page(w, http.StatusUnprocessableEntity, LoginPage{Heading: "The login failed", Text: err.Error()})
		return
	}
	setLoginCookie(w, one, id, cookie, int(loginTime/time.Second))
	to := address
	if u, err := url.Parse(address); err == nil {
		to = u.Host
	}
	w.Header().Set("Refresh", "0; url="+address) // browsers do not follow redirects of a form to other sites
	l.page(w, http.StatusOK,
		LoginPage{Heading: "Log in to " + one.Server, Text: "The next page is at " + to + ".", Link: address})
}

// finish gets the tokens after the browser has returned from the authorization server.
func (l *loginPages) finish(w http.ResponseWriter, r *http.Request, id string, one login) {
	cookie, err := r.Cookie(loginCookie(id))
	if err != nil || !one.Browser.Is(auth.HashOf(cookie.Value)) {
		l.log.Warn("login refused: another browser", "server", one.Server, "caller", one.Client, "from", r.RemoteAddr)
		l.page(w, http.StatusForbidden,
			LoginPage{Heading: "This login was begun elsewhere",
				Text: "Open the address that your program has shown in this browser."})
		return
	}
	err = l.logins.offers.Current(func(session *engine.Session, _ *registry.Registry) error {
		return session.Logins.Finish(r.Context(), one.Server, one.Client, one.Pending, r.URL.Query())
	})
	if err == nil {
		l.logins.connect(context.WithoutCancel(r.Context()), one)
		one.Done, one.Pending, one.Replica = true, nil, l.logins.replica
		err = l.logins.put(r.Context(), id, one)
	}
	if err != nil {
		l.log.Warn("login failed", "server", one.Server, "caller", one.Client, "error", err)
		l.page(w, http.StatusUnprocessableEntity, LoginPage{Heading: "The login failed", Text: err.Error()})
		return
	}
	setLoginCookie(w, one, id, "", -1)
	l.log.Info("logged in", "server", one.Server, "caller", one.Client)
	l.page(w, http.StatusOK, LoginPage{
		Heading: "You are logged in to " + one.Server, Text: "You can close this page and go back to your program.",
	})
}

// connect offers the client what its new login gives access to, if this process serves it.
func (l *logins) connect(ctx context.Context, one login) {
	ctx = caller.With(ctx, &caller.Caller{Name: one.Client, Token: one.Client})
	for _, o := range l.offers.All() {
		for _, server := range o.OwnServers() {
			if o.Client == one.Client && server.Info().Name == one.Server {
				l.retries.Reconnect(ctx, server)
			}
		}
	}
}

// loginCookie returns the name of the cookie of a login. A browser may have several.
func loginCookie(id string) string { return "toolreg-login-" + strings.ToLower(id[:min(len(id), 8)]) }

// setLoginCookie sets the cookie, which the browser must also send when another site redirects it
// back.
func setLoginCookie(w http.ResponseWriter, one login, id, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: loginCookie(id), Value: value, Path: loginReturn, MaxAge: seconds, HttpOnly: true,
		Secure: strings.HasPrefix(one.Base, "https:"), SameSite: http.SameSiteLaxMode,
	})
}

func (l *loginPages) page(w http.ResponseWriter, status int, p LoginPage) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	l.write(w, p)
}

// base returns the beginning of the URLs of a login's pages.
func (l *logins) base(ctx context.Context, from auth.Identity, name string) (string, error) {
	redirect := ""
	err := l.offers.Current(func(session *engine.Session, _ *registry.Registry) (err error) {
		redirect, err = session.Logins.RedirectURI(ctx, name)
		return err
	})
	if base, ok := strings.CutSuffix(redirect, loginReturn); err != nil || ok {
		return base, err
	}
	if redirect != "" {
		return "", fmt.Errorf("server %q needs a login, and oauth.redirectUri in its settings is not an address "+
			"to which browsers can return; set it to https://HOST%s", name, loginReturn)
	}
	if from.Base == "" {
		return "", fmt.Errorf("server %q needs a login, and toolreg does not know the address at which browsers "+
			"reach it; in the settings of the server, set oauth.redirectUri to https://HOST%s", name, loginReturn)
	}
	return from.Base, nil
}

// call runs the tool that logs in to a server.
func (l *logins) call(ctx context.Context, server *mcpclient.Source) (registry.Result, error) {
	connect := server.Retry // the client has logged in meanwhile
	if server.Info().State == mcpclient.StateNeedsLogin {
		connect = func(ctx context.Context) error { return l.logIn(ctx, server) }
	}
	if err := connect(ctx); err != nil {
		return registry.Result{}, err
	}
	return registry.Result{Content: []registry.Content{registry.TextContent(
		"Logged in to " + server.Info().Name + ". List the tools again to see those of this server.",
	)}}, nil
}

// logIn asks the user of a client to log in to a server, and waits until they have done so.
func (l *logins) logIn(ctx context.Context, server *mcpclient.Source) error {
	c, name := question.From(ctx), server.Info().Name
	base, err := l.base(ctx, c.From, name)
	if err != nil {
		return err
	}
	one := login{Client: caller.Token(ctx), Server: name, Base: base, Until: time.Now().Add(loginTime)}
	id := rand.Text()
	if err := l.put(ctx, id, one); err != nil {
		return err
	}
	address := one.Base + loginPath + id
	if !c.CanOpen() {
		return fmt.Errorf("server %q needs a login: the user opens %s in a browser within %s and enters the token "+
			"with which this client uses toolreg; call the tool again afterwards", name, address, loginTime)
	}
	result, err := c.Elicit(ctx, "toolreg.login", &mcp.ElicitParams{
		Mode: "url", URL: address, ElicitationID: id,
		Message: fmt.Sprintf("Log in to server %q. "+
			"The page asks for the token with which this client uses toolreg.", name),
	}, nil)
	switch {
	case err != nil:
		return fmt.Errorf("server %q needs a login: %w", name, err)
	case result.Action != "accept":
		return fmt.Errorf(
			"server %q needs a login, which the user did not agree to (%s); it can be made at %s within %s",
			name, result.Action, address, loginTime)
	}
	for {
		if err := timing.Pause(ctx, loginPoll); err != nil {
			return err
		}
		now, ok, err := l.find(ctx, id)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("server %q needs a login, which was not completed within %s", name, loginTime)
		case now.Done:
			if !c.Modern { // if that fails, the client learns of it from the result
				_ = c.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: id})
			}
			if now.Replica != l.replica {
				l.retries.Reconnect(ctx, server)
			}
			return nil
		}
	}
}
