package serve

import (
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// processOf names the caller's own process of a server that a request needs (perClient). It returns "" if the
// request needs none.
func (h *HTTP) processOf(in *transport.Inbound) string {
	server := h.server.serverOf(in)
	if server == nil || !server.Settings().PerClient {
		return ""
	}
	return in.From.Name + "\x00" + server.Info().Name
}

// serverOf returns the server that provides what a request names. It returns nil if the request names
// nothing, or no server provides it.
func (s *Server) serverOf(in *transport.Inbound) *mcpclient.Source {
	s.mu.Lock()
	o := s.offer
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	params := jsonx.Get(in.Body, "params")
	name, _ := jsonx.Text(jsonx.Get(params, "name"))
	who := &caller.Caller{Name: in.From.Name, Groups: in.From.Groups, Profile: in.From.Profile}
	ctx := caller.With(in.R.Context(), who)
	switch in.Member("method") {
	case "tools/call":
		t, err := o.Registry.Lookup(name)
		if err != nil {
			return nil
		}
		if server, ok := registry.ServerOf(t.Source); ok {
			source, _ := o.Servers.Of(server + "__").(*mcpclient.Source) // nil for an API
			return source
		}
	case "prompts/get":
		if p, err := s.viewOf(ctx, o.Offer).Prompt(ctx, name); err == nil {
			return p.Server
		}
	case "resources/read":
		uri, _ := jsonx.Text(jsonx.Get(params, "uri"))
		if r, err := s.viewOf(ctx, o.Offer).Resource(ctx, uri); err == nil {
			return r.Server
		}
	}
	return nil
}
