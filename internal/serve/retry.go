package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
)

// retry is an attempt to start or reach a server again.
type retry struct {
	over chan struct{} // closed at its end
	err  error         // set before
}

// retryFailed tries again to start or reach servers that could not list their tools, and
// servers that have ended while clients wait for changes of their resources. Each request
// of a client triggers it. There is no timer, which would start a broken program every 30
// seconds even if no client is active. Documents of APIs are asked for again in the same way,
// also if nothing failed, because an API reports no changes.
func (s *Server) retryFailed(o *offer.Offer) {
	for _, source := range o.Failed {
		if server, ok := source.(*mcpclient.Source); ok && !server.Paused() {
			s.retry(server)
		}
	}
	for _, api := range o.Servers.APIs() {
		if api.Due() {
			s.retry(api)
		}
	}
	for _, server := range s.subscriptions.servers(o) {
		if server.Lost() && !server.Paused() {
			s.retry(server)
		}
	}
}

// retry tries a server or an API again, unless an attempt is already in progress, and offers
// what it lists.
func (s *Server) retry(source registry.Source) *retry { return s.attempt(source, again) }

// attempt is [Server.retry] with another way to connect.
func (s *Server) attempt(source registry.Source,
	connect func(context.Context, registry.Source) (changed bool, err error)) *retry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.retrying[source]; r != nil {
		return r
	}
	r := &retry{over: make(chan struct{})}
	s.retrying[source] = r
	s.closing.Go(func() {
		defer close(r.over)
		var changed bool
		if changed, r.err = connect(s.life, source); r.err != nil {
			s.opts.Log.Debug("a server failed again", "server", source.Name(), "error", r.err)
			lacksLogin := func(o *offer.Offer) bool { return o.LacksLogin(source) }
			// it failed for another reason before
			if errors.Is(r.err, registry.ErrNeedsLogin) && slices.ContainsFunc(s.offers(), lacksLogin) {
				s.refresh(s.life, []registry.Source{source})
			}
		} else if changed {
			s.refresh(s.life, []registry.Source{source})
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.retrying, source)
	})
	return r
}

// again connects to a server or reads the document of an API, and reports whether there may
// be other tools.
func again(ctx context.Context, source registry.Source) (changed bool, err error) {
	switch source := source.(type) {
	case *openapi.Source:
		return source.Again(ctx)
	case *mcpclient.Source:
		return true, source.Retry(ctx)
	}
	return false, nil
}

// resolve is [offer.View.ResolveTool] for a tool whose server may have to be tried again first. It returns
// what has the tool, or the server's error if it fails again.
func (s *Server) resolve(ctx context.Context, v *offer.View, req mcp.Request) (*offer.View, error) {
	call, ok := req.(*mcp.CallToolRequest)
	if !ok {
		return v, nil
	}
	ctx = v.Context(ctx)
	err := v.ResolveTool(ctx, call.Params)
	name := call.Params.Name
	if v.LoginTool(name) != nil {
		return v, nil
	}
	if t := v.Tool(name); err == nil && t != nil {
		name = t.Inner(call.Params.Arguments)
	} else if err == nil {
		name = "" // every call of it is denied
	}
	server := v.FailedServerOf(name)
	if server == nil {
		return v, err
	}
	r := s.retry(server)
	select {
	case <-r.over:
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
	if r.err != nil {
		return v, v.LoginFirst(server, r.err)
	}
	if v, err = s.offered(ctx); err != nil {
		return v, err
	}
	return v, v.ResolveTool(ctx, call.Params)
}

// Restart ends the processes of a server, or the sessions with it, and starts it again, even if it
// is kept between runs. Its tools are offered anew.
func (s *Server) Restart(ctx context.Context, name string) error {
	return s.Current(func(session *engine.Session, _ *registry.Registry) error {
		servers, _, err := session.Servers.Named(name)
		if err != nil {
			return err
		}
		for _, server := range servers {
			if _, err := session.Connections.EndKept(ctx, server); err != nil {
				return err
			}
			if err := server.Restart(ctx); err != nil {
				return err
			}
			s.refresh(s.life, []registry.Source{server})
		}
		return nil
	})
}
