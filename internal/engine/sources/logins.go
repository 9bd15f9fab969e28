package sources

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/store"
)

// Logins are the logins to servers and APIs, those of the person and those of clients.
type Logins struct {
	Programs  *programs.Set
	Shared    *store.Store // of the session; nil if it has none
	PerClient bool         // see engine.Options

	opening sync.Mutex
	opened  *store.Store // see clientStore; nil until it is needed
}

// Store returns the store of logins. Those of clients are in the store of serve, if there is one.
func (l *Logins) Store() *oauth.Store {
	out := &oauth.Store{Open: l.Programs.Folders.State}
	if l.Programs.Settings.Serve.Store.Value != "" {
		out.Clients = func(ctx context.Context) (oauth.Place, error) {
			shared, err := l.clientStore(ctx)
			return sharedLogins{shared}, err
		}
	}
	return out
}

// clientStore returns the store of serve, which it opens if the session does not use it.
func (l *Logins) clientStore(ctx context.Context) (*store.Store, error) {
	if l.Shared != nil {
		return l.Shared, nil
	}
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.opened == nil {
		var err error
		if l.opened, err = OpenStore(ctx, l.Programs.Settings.Serve, l.Programs.Expander); err != nil {
			return nil, err
		}
	}
	return l.opened, nil
}

// clientOf returns the client whose login is used for calls of a server; "" means the person's.
func (l *Logins) clientOf(ctx context.Context, server settings.Server) string {
	if l.PerClient && server.LoginPerClient() {
		return caller.Token(ctx)
	}
	return ""
}

// Client returns the login to an expanded server. It reads nothing until it is used.
func (l *Logins) Client(server settings.Server) *oauth.Client {
	c := oauth.New(server, l.Store(), func(err error) {
		l.Programs.Warn(registry.Warning("login_unkept", registry.MCPPrefix+server.Name, err.Error(), ""))
	})
	if given := l.Programs.Settings.Server(server.Name); given != nil && canChange(given.OAuth) {
		c.Reread(func(ctx context.Context) (*settings.OAuth, error) {
			now, err := l.Programs.Expander.Server(ctx, *given)
			return now.OAuth, err
		})
	}
	return c
}

// canChange reports whether secrets of the setting oauth may change while the process runs.
func canChange(o *settings.OAuth) bool {
	return o != nil && slices.ContainsFunc([]string{o.ClientSecret, o.PrivateKey, o.Assertion, o.IDToken}, secret.CanChange)
}

// Remote returns a server of the settings that uses HTTP. The error is a
// *NoServerError, a *settings.InputError or a *document.Error.
func (l *Logins) Remote(name string) (settings.Server, error) {
	switch server := l.Programs.Settings.Server(name); {
	case server == nil:
		return settings.Server{}, &NoServerError{name, l.Programs.Settings.EntryNames()}
	case server.Err != nil:
		return settings.Server{}, server.Err
	case server.URL == "" && server.HTTPURL == "":
		return settings.Server{}, &settings.InputError{
			Err: fmt.Errorf("server %q is a program (%s); only servers with a url have logins", name, server.Origin),
		}
	default:
		return *server, nil
	}
}

// apiClient returns the login to an expanded API. It reads nothing until it is used.
func (l *Logins) apiClient(api settings.API) *oauth.Client {
	c := oauth.ForAPI(api, l.Store(), func(err error) {
		l.Programs.Warn(registry.Warning("login_unkept", registry.APIPrefix+api.Name, err.Error(), ""))
	})
	if given := l.Programs.Settings.API(api.Name); given != nil && canChange(given.OAuth) {
		c.Reread(func(ctx context.Context) (*settings.OAuth, error) {
			now, err := l.Programs.Expander.API(ctx, *given)
			return now.OAuth, err
		})
	}
	return c
}

// To returns the login to a named server or API: that of a client of serve or, if client is "", the
// person's. The error is a *NoServerError, a *settings.InputError or a *document.Error.
func (l *Logins) To(ctx context.Context, name, client string) (*oauth.Client, error) {
	entry := l.Programs.Settings.API(name)
	if entry == nil {
		server, err := l.Remote(name)
		if err == nil {
			err = CheckClient(server, client)
		}
		if err == nil {
			server, err = l.Programs.Expander.Server(ctx, server)
		}
		return l.Client(server).For(client), err
	}
	switch {
	case client != "":
		return nil, CheckClient(entry.Server, client)
	case entry.Err != nil:
		return nil, entry.Err
	case entry.OAuth == nil:
		return nil, &settings.InputError{
			Err: fmt.Errorf("API %q has no auth.oauth (%s); only APIs with it have logins", name, entry.Origin),
		}
	}
	api, err := l.Programs.Expander.API(ctx, *entry)
	return l.apiClient(api), err
}

// CheckClient returns a *settings.InputError if clients of serve have no logins of their own to a
// server. The client "" is the person, who may have a login to any server.
func CheckClient(server settings.Server, client string) error {
	switch {
	case client == "":
		return nil
	case client == caller.Stdio || client == caller.Local:
		return &settings.InputError{Err: fmt.Errorf("clients without a token (%s) use your own login", client),
			Hint: "leave out --client"}
	case !server.LoginPerClient():
		return &settings.InputError{
			Err:  fmt.Errorf("server %q has one login, which all clients use (%s)", server.Name, server.Origin),
			Hint: "set oauth.per: client in its settings",
		}
	}
	return nil
}

// RedirectURI returns the setting oauth.redirectUri of a server, expanded; "" if it is not set.
func (l *Logins) RedirectURI(ctx context.Context, name string) (string, error) {
	server, err := l.Remote(name)
	if err == nil {
		server, err = l.Programs.Expander.Server(ctx, server)
	}
	if err != nil || server.OAuth == nil {
		return "", err
	}
	return server.OAuth.RedirectURI, nil
}

// Finish ends a login that [Connections.BeginLogin] began; see [oauth.Client.Finish].
func (l *Logins) Finish(ctx context.Context, name, client string, pending []byte, answer url.Values) error {
	login, err := l.To(ctx, name, client)
	if err == nil {
		err = login.Finish(ctx, pending, answer)
	}
	if err != nil {
		return fmt.Errorf("logging in to server %q: %w", name, err)
	}
	return nil
}

// ErrPerClient is returned by [Logins.Credentials] for a server that runs in a process for each
// client.
var ErrPerClient = errors.New("each client has its own process of the server")

// Credentials returns what calls of a tool authenticate with, for the key of cached results: the
// expanded settings of its server or program, secrets that it inherits, and the login.
func (l *Logins) Credentials(ctx context.Context, t *registry.Tool) (string, error) {
	set := l.Programs.Settings
	if !t.OfServer() {
		return l.ofProgram(ctx, t)
	}
	if api := set.API(t.Server); api != nil {
		return l.ofAPI(ctx, *api)
	}
	server := set.Server(t.Server)
	switch {
	case server == nil:
		return "", nil
	case server.PerClient && !caller.IsPerson(ctx):
		return "", ErrPerClient
	}
	s, err := l.Programs.Expander.Server(ctx, *server)
	if err != nil {
		return "", err
	}
	all := []any{s.Command, s.Args, values.Pairs(s.Env), s.Cwd, s.URL,
		s.HTTPURL, values.Pairs(s.Headers), l.inheritedSecrets(s.InheritEnv)}
	if s.URL+s.HTTPURL != "" {
		account, err := l.Client(s).For(l.clientOf(ctx, s)).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// ofAPI returns what the requests to an API authenticate with.
func (l *Logins) ofAPI(ctx context.Context, api settings.API) (string, error) {
	a, err := l.Programs.Expander.API(ctx, api)
	if err != nil {
		return "", err
	}
	all := []any{a.Spec, a.URL, values.Pairs(a.Headers), values.Auth(a)}
	if a.OAuth != nil {
		account, err := l.apiClient(a).Account(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, account)
	}
	return fmt.Sprintf("%#v", all), nil
}

// ofProgram returns what a tool that runs as a program here authenticates with.
func (l *Logins) ofProgram(ctx context.Context, t *registry.Tool) (string, error) {
	p := l.Programs
	if t.Source == registry.SourceBuiltin {
		return "", nil
	}
	env, err := values.ToolEnviron(ctx, p.Settings, p.Expander, nil)
	if err != nil {
		return "", err
	}
	own, err := p.PluginSettings(ctx, t.Plugin)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%#v", []any{env, string(own), l.inheritedSecrets(p.Settings.InheritEnv)}), nil
}

// inheritedSecrets returns the entries of our environment whose names indicate secrets, if
// a program inherits all of it.
func (l *Logins) inheritedSecrets(inherits bool) []string {
	if !inherits {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(l.Programs.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !secret.Named(name)
	})
	slices.Sort(out)
	return out
}

// OpenStore returns the store of the settings (serve.store), or nil if there is none. It does
// not connect. The error is a *settings.InputError and does not contain the address.
func OpenStore(ctx context.Context, set settings.Serve, x *values.Expander) (*store.Store, error) {
	if set.Store.Value == "" {
		return nil, nil
	}
	fail := func(err error) error {
		return &settings.InputError{Err: fmt.Errorf("%s: serve.store: %w", set.Store.Origin, err)}
	}
	secret, err := x.StateKey(ctx, set.StateKey)
	switch {
	case err != nil:
		return nil, &settings.InputError{Err: err}
	case secret == "":
		return nil, fail(errors.New("it needs serve.stateKey, with which everything in the store is sealed; " +
			"a secret is the output of: openssl rand -hex 32"))
	}
	address, err := x.Secret(ctx, set.Store.Value, set.Store.Origin.Scope)
	if err != nil {
		return nil, fail(err)
	}
	s, err := store.Open(address, secret)
	if err != nil {
		return nil, fail(err)
	}
	return s, nil
}

// sharedLogins keeps the logins of clients in a store until 90 days after they were last renewed.
// It implements oauth.Place.
type sharedLogins struct{ store *store.Store }

const (
	loginsKind    = "logins"
	loginLockKind = "login-lock"
	// loginLockTime is how long a replica may take to renew a login. Other replicas wait, because a
	// refresh token can be used only once.
	loginLockTime = 2 * time.Minute
	loginLockPoll = 100 * time.Millisecond
	// loginsTime is how long logins are kept after their last change.
	loginsTime = 90 * 24 * time.Hour
)

func (l sharedLogins) Read(ctx context.Context, key string) ([]byte, error) {
	v, err := l.store.Get(ctx, loginsKind, key)
	return v.Data, err
}

func (l sharedLogins) Update(ctx context.Context, key string, change func([]byte) ([]byte, error)) error {
	tick := time.Tick(loginLockPoll)
	for {
		_, locked, err := l.store.Swap(ctx, loginLockKind, key, store.Value{}, []byte{1}, loginLockTime)
		if err != nil {
			return err
		}
		if locked {
			break
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { _ = l.store.Delete(context.WithoutCancel(ctx), loginLockKind, key) }() // if this fails, it expires
	now, err := l.store.Get(ctx, loginsKind, key)
	if err != nil {
		return err
	}
	data, err := change(now.Data)
	if err != nil || data == nil {
		return err
	}
	return l.store.Put(context.WithoutCancel(ctx), loginsKind, key, data, loginsTime)
}

func (l sharedLogins) Remove(ctx context.Context, key string) error {
	return l.store.Delete(ctx, loginsKind, key)
}

func (l sharedLogins) Each(ctx context.Context, use func([]byte, func(context.Context) error) error) error {
	return l.store.Each(ctx, loginsKind, use)
}
