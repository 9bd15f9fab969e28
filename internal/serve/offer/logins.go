package offer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// loginTool is a tool with which the user of a client logs in to a server.
type loginTool struct {
	tool    *registry.Tool
	server  *mcpclient.Source
	account func(context.Context) (string, error) // identifies the client's login
	tried   atomic.Pointer[string]                // the account with which the server was last reached
	// listed says that the client must log in. Otherwise a call of the tool may have begun before it did.
	listed bool
}

// OwnOf returns the servers of a client that are reached with its logins.
func OwnOf(servers *sources.Servers) []*mcpclient.Source {
	return slices.DeleteFunc(servers.On(), func(server *mcpclient.Source) bool {
		return !server.Settings().LoginPerClient()
	})
}

// OwnServers returns the servers that are reached with the client's logins; nil for the offer for
// all, which uses the person's.
func (o *Offer) OwnServers() []*mcpclient.Source {
	if o.Client == "" {
		return nil
	}
	return OwnOf(o.Servers)
}

// OwnServer returns the server of a tool if it is reached with the client's login; otherwise nil.
func (o *Offer) OwnServer(t *registry.Tool) *mcpclient.Source {
	for _, server := range o.OwnServers() {
		if server.Name() == t.Source {
			return server
		}
	}
	return nil
}

// ClientOf returns the client whose login reaches a server; "" if it is the same for all.
func (o *Offer) ClientOf(server *mcpclient.Source) string {
	if server.Settings().LoginPerClient() {
		return o.Client
	}
	return ""
}

// addLoginTools adds a tool for each server that the client may have to log in to, unless the rules
// deny every call of it. The tool needs no approval, because the user decides on the login page.
func (o *Offer) addLoginTools(ctx context.Context,
	logIn func(context.Context, *mcpclient.Source) (registry.Result, error)) {
	for _, server := range o.OwnServers() {
		of := server.Info().Name
		name := registry.ValidName(of + "__login")
		if _, err := o.Registry.Lookup(name); err == nil {
			continue
		}
		t := &registry.Tool{Trusted: true, Definition: registry.Definition{
			Name: name, DisplayName: name, Source: server.Name(), Server: of, ServerTool: "login",
			Category:    registry.CategoryRead,
			InputSchema: json.RawMessage(`{"type":"object","properties":{}}`),
			Description: "Log in to " + of + ", whose tools are listed afterwards. " +
				"The user gets the address of a page where they log in.",
		}}
		t.Run = func(ctx context.Context, _ registry.Call) (registry.Result, error) { return logIn(ctx, server) }
		offered, _, err := o.Session.Offers.Split(ctx, o.Registry, []*registry.Tool{t})
		if err != nil || len(offered) == 0 {
			continue
		}
		l := &loginTool{tool: t, server: server, listed: server.Info().State == mcpclient.StateNeedsLogin}
		login, err := o.Session.Logins.To(ctx, of, o.Client)
		if err != nil {
			continue
		}
		l.account = login.Account
		now, _ := l.account(ctx) // after an error, the next request tries again
		l.tried.Store(&now)
		o.logins = append(o.logins, l)
	}
}

// ChangedLogins returns the servers that the client has logged in to, or out of, elsewhere since
// the offer was made. It reports each change once.
func (o *Offer) ChangedLogins(ctx context.Context) (out []*mcpclient.Source) {
	for _, l := range o.logins {
		if now, err := l.account(ctx); err == nil && now != *l.tried.Swap(&now) {
			out = append(out, l.server)
		}
	}
	return out
}

// LacksLogin reports whether a server needs the client's login but the client has no tool to log in
// to it.
func (o *Offer) LacksLogin(source registry.Source) bool {
	return o.loginTo(source) == nil && slices.ContainsFunc(o.OwnServers(), func(server *mcpclient.Source) bool {
		return registry.Source(server) == source
	})
}

func (o *Offer) loginTools(p *Profile) (out []engine.Found) {
	for _, l := range o.logins {
		if l.listed && p.showsServer(l.server.Info().Name) {
			out = append(out, engine.FoundIn(o.Registry, []*registry.Tool{l.tool})...)
		}
	}
	return out
}

// LoginTool returns the tool of this name that logs in to a server of the profile; nil if there is
// none.
func (v *View) LoginTool(name string) *registry.Tool {
	for _, l := range v.logins {
		if l.tool.Name == name && v.profile.showsServer(l.server.Info().Name) {
			return l.tool
		}
	}
	return nil
}

// loginTo returns the tool that logs in to a server whose tools can only be listed afterwards; nil
// if there is none.
func (o *Offer) loginTo(server registry.Source) *registry.Tool {
	for _, l := range o.logins {
		if l.listed && registry.Source(l.server) == server {
			return l.tool
		}
	}
	return nil
}

// LoginFirst returns the error of a server or, if a tool logs in to it, an error that says to call
// that tool first.
func (o *Offer) LoginFirst(server registry.Source, failed error) error {
	if tool := o.loginTo(server); tool != nil && errors.Is(failed, registry.ErrNeedsLogin) {
		return fmt.Errorf("%w: server %q lists its tools after that; call %s",
			registry.ErrNeedsLogin, tool.Server, tool.Name)
	}
	return failed
}
