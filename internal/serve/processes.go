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

// serverOf returns the server that provides what a request names; nil if it names nothing, or no
// server does.
func (s *Server) serverOf(in *transport.Inbound) *mcpclient.Source {
	s.mu.Lock()
	o := s.offer
	s.mu.Unlock()
	if o == nil {
		return nil
	}
	params := jsonx.Get(in.Body, "params")
	name, _ := jsonx.Text(jsonx.Get(params, "name"))
	switch in.Member("method") {
	case "tools/call":
		t, err := o.registry.Lookup(name)
		if err != nil {
			return nil
		}
		if server, ok := registry.ServerOf(t.Source); ok {
			source, _ := o.servers.Of(server + "__").(*mcpclient.Source) // nil for an API
			return source
		}
	case "prompts/get":
		if p := o.prompts[name]; p != nil {
			return p.server
		}
	case "resources/read":
		uri, _ := jsonx.Text(jsonx.Get(params, "uri"))
		who := &caller.Caller{Name: in.From.Name, Groups: in.From.Groups, Profile: in.From.Profile}
		if r, _ := s.view(o, in.From.Profile).shown(caller.With(in.R.Context(), who)).find(uri); r != nil {
			return r.server
		}
	}
	return nil
}
