package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/question"
)

// loginTool is a tool that logs the user of a client in to a server.
type loginTool struct {
	tool    *registry.Tool
	server  *mcpclient.Source
	account func(context.Context) (string, error) // identifies the login that the client has
	tried   atomic.Pointer[string]                // the account with which the server was last reached
	listed  bool                                  // the client must log in; a call of the tool may have begun before it did
}

// addLoginTools adds a tool for each server that the client may have to log in to, unless the
// rules deny every call of it. It needs no approval, because the user decides on the page.
func (s *Server) addLoginTools(ctx context.Context, o *offer) {
	for _, server := range o.ownServers() {
		of := server.Info().Name
		name := registry.ValidName(of + "__login")
		if _, err := o.registry.Lookup(name); err == nil {
			continue
		}
		t := &registry.Tool{Trusted: true, Definition: registry.Definition{
			Name: name, DisplayName: name, Source: server.Name(), Server: of, ServerTool: "login",
			Category:    registry.CategoryRead,
			InputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
			Description: "Log in to " + of + ", whose tools are listed afterwards. The user gets the address of a page where they log in.",
		}}
		t.Run = func(ctx context.Context, _ registry.Call) (registry.Result, error) { return s.callLogin(ctx, server) }
		offered, _, err := o.session.Offers.Split(ctx, o.registry, []*registry.Tool{t})
		if err != nil || len(offered) == 0 {
			continue
		}
		l := &loginTool{tool: t, server: server, listed: server.Info().State == mcpclient.StateNeedsLogin}
		if l.account, err = o.session.Connections.Account(ctx, of, o.client); err != nil {
			continue
		}
		now, _ := l.account(ctx) // after an error, the next request tries again
		l.tried.Store(&now)
		o.logins = append(o.logins, l)
	}
}

// lacksLogin reports whether a server is reached with logins of a client that has no tool to log
// in to it.
func (s *Server) lacksLogin(source registry.Source) bool {
	return slices.ContainsFunc(s.offers(), func(o *offer) bool {
		return slices.ContainsFunc(o.ownServers(), func(server *mcpclient.Source) bool { return registry.Source(server) == source }) &&
			!slices.ContainsFunc(o.logins, func(l *loginTool) bool { return l.listed && registry.Source(l.server) == source })
	})
}

// loginTools returns those that are listed, for the servers of a profile.
func (o *offer) loginTools(p *Profile) (out []engine.Found) {
	for _, l := range o.logins {
		if l.listed && p.showsServer(l.server.Info().Name) {
			out = append(out, engine.FoundIn(o.registry, []*registry.Tool{l.tool})...)
		}
	}
	return out
}

// loginNamed returns the tool of a name that logs in to a server of the profile. It returns nil if there
// is none.
func (v *view) loginNamed(name string) *registry.Tool {
	for _, l := range v.logins {
		if l.tool.Name == name && v.profile.showsServer(l.server.Info().Name) {
			return l.tool
		}
	}
	return nil
}

// loginTo returns the tool that logs in to a server whose tools are listed after that, or nil.
func (o *offer) loginTo(server registry.Source) *registry.Tool {
	for _, l := range o.logins {
		if l.listed && registry.Source(l.server) == server {
			return l.tool
		}
	}
	return nil
}

// loginFirst returns the error of a server, or which tool to call first if that logs in to it.
func (o *offer) loginFirst(server registry.Source, failed error) error {
	if tool := o.loginTo(server); tool != nil && errors.Is(failed, registry.ErrNeedsLogin) {
		return fmt.Errorf("%w: server %q lists its tools after that; call %s", registry.ErrNeedsLogin, tool.Server, tool.Name)
	}
	return failed
}

// ownServer returns the server of a tool if it is reached with the login of the client, or nil.
func (o *offer) ownServer(t *registry.Tool) *mcpclient.Source {
	for _, server := range o.ownServers() {
		if server.Name() == t.Source {
			return server
		}
	}
	return nil
}

// callLogin calls the tool that logs in to a server.
func (s *Server) callLogin(ctx context.Context, server *mcpclient.Source) (registry.Result, error) {
	connect := server.Retry // the client has logged in meanwhile
	if server.Info().State == mcpclient.StateNeedsLogin {
		connect = func(ctx context.Context) error { return s.logIn(ctx, server) }
	}
	if err := connect(ctx); err != nil {
		return registry.Result{}, err
	}
	return registry.Result{Content: []registry.Content{registry.TextContent(fmt.Sprintf("Logged in to %s. List the tools again to see those of this server.",
		server.Info().Name))}}, nil
}

// logIn asks the user of a client to log in to a server, and waits until they have done so.
func (s *Server) logIn(ctx context.Context, server *mcpclient.Source) error {
	c, name := question.From(ctx), server.Info().Name
	base, err := s.loginBase(ctx, c.From, name)
	if err != nil {
		return err
	}
	one := login{Client: caller.Token(ctx), Server: name, Base: base, Until: time.Now().Add(loginTime)}
	id := rand.Text()
	if err := s.logins.put(ctx, id, one); err != nil {
		return err
	}
	address := one.Base + loginPath + id
	if !c.CanOpen() {
		return fmt.Errorf("server %q needs a login: the user opens %s in a browser within %s and enters the token with which this client uses toolreg; call the tool again afterwards",
			name, address, loginTime)
	}
	result, err := c.Elicit(ctx, "toolreg.login", &mcp.ElicitParams{Mode: "url", URL: address, ElicitationID: id,
		Message: fmt.Sprintf("Log in to server %q. The page asks for the token with which this client uses toolreg.", name)}, nil)
	switch {
	case err != nil:
		return fmt.Errorf("server %q needs a login: %w", name, err)
	case result.Action != "accept":
		return fmt.Errorf("server %q needs a login, which the user did not agree to (%s); it can be made at %s within %s",
			name, result.Action, address, loginTime)
	}
	tick := time.NewTicker(loginPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, ok, err := s.logins.find(ctx, id)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("server %q needs a login, which was not completed within %s", name, loginTime)
		case now.Done:
			if !c.Modern {
				_ = c.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: id}) // without it, the client learns of the result
			}
			if s.replica != nil && now.Replica != s.replica.ID {
				s.loggedIn(ctx, server)
			}
			return nil
		}
	}
}

// loggedIn connects to a server with the new login of a client, and offers what it lists.
func (s *Server) loggedIn(ctx context.Context, server *mcpclient.Source) {
	r := s.attempt(server, func(ctx context.Context, _ registry.Source) (bool, error) { return true, server.Restart(ctx) })
	select {
	case <-r.over:
	case <-ctx.Done():
	}
}

// useLogins returns what the caller of ctx is offered after it has connected anew to servers to which the
// client has logged in or out since v was made, elsewhere.
func (s *Server) useLogins(ctx context.Context, v *view) (*view, error) {
	connected := false
	for _, l := range v.logins {
		if now, err := l.account(ctx); err == nil && now != *l.tried.Swap(&now) {
			s.loggedIn(ctx, l.server)
			connected = true
		}
	}
	if !connected {
		return v, nil
	}
	return s.offered(ctx)
}
