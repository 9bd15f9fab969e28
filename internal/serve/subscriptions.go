package serve

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient"
)

// listenMethod is the request of revision 2026-07-28 that is open for as long as
// its client wants notifications.
const listenMethod = "subscriptions/listen"

// listen handles a request that would never end by itself. Its client gets an answer
// when the server stops.
func (s *Server) listen(ctx context.Context, next mcp.MethodHandler, req mcp.Request) (mcp.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return next(ctx, listenMethod, req)
}

// Stop ends what clients wait for that is no call. Calls go on.
func (s *Server) Stop() { s.stopOnce.Do(func() { close(s.stopping) }) }

// resourceServer returns the server of a resource; nil where none has it.
func (o *offers) resourceServer(uri string) *mcpclient.Source {
	if r := o.resources[uri]; r != nil {
		return r.server
	}
	return nil
}

// subscribe subscribes to the updates of a resource.
func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	if _, err := s.offered(ctx); err != nil { // it may come with a request that does not wait for the offer
		return err
	}
	o, done := s.use()
	defer done()
	server := o.resourceServer(req.Params.URI)
	if server == nil {
		return mcp.ResourceNotFoundError(req.Params.URI)
	}
	return refusal(server.Subscribe(outgoing{ctx}, req.Params.URI))
}

// unsubscribe does nothing, because other clients may still be subscribed. The SDK
// knows which clients to notify.
func (s *Server) unsubscribe(context.Context, *mcp.UnsubscribeRequest) error { return nil }

// resourceChanged notifies the clients that have subscribed.
func (s *Server) resourceChanged(ctx context.Context, uri string) {
	s.mu.Lock()
	servers := make([]*mcp.Server, 0, len(s.servers))
	for _, server := range s.servers {
		servers = append(servers, server)
	}
	s.mu.Unlock()
	for _, server := range servers {
		_ = server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
	}
}
