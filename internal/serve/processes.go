package serve

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// Clients of revision 2026-07-28 have no sessions, but some of their requests must be handled
// by a certain replica: the one where the call waits that a request continues, or the one that
// has the caller's own process of a server (perClient). They are forwarded like those of sessions.

// processKind is the kind of values that say who has a caller's process.
const processKind = "process"

// concern is what binds a request without a session to a replica.
type concern struct {
	question string // the id of one that a call waits for
	process  string // the id of a caller's process
}

// concernOf returns what a request is about; the zero value: nothing that binds it.
func (s *Server) concernOf(in *transport.Inbound) concern {
	params := jsonx.Get(in.Body, "params")
	if sealed, ok := jsonx.Text(jsonx.Get(params, "requestState")); ok {
		if id := s.states.QuestionOf(sealed, in.From.Account()); id != "" {
			return concern{question: id}
		}
	}
	if server := s.serverOf(in, params); server != nil && server.Settings().PerClient {
		return concern{process: in.From.Name + "\x00" + server.Info().Name}
	}
	return concern{}
}

// serverOf returns the server that provides what a request names; nil if it names nothing, or no
// server does.
func (s *Server) serverOf(in *transport.Inbound, params json.RawMessage) *mcpclient.Source {
	s.mu.Lock()
	o := s.offer
	s.mu.Unlock()
	if o == nil {
		return nil
	}
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

// whereIs returns the other replica that must handle a request without a session; the zero value
// is this one, or any. While the store is away, it is this one.
func (h *HTTP) whereIs(in *transport.Inbound) cluster.Peer {
	r, ctx := h.server.replica, in.R.Context()
	if r == nil {
		return cluster.Peer{}
	}
	switch about := h.server.concernOf(in); {
	case about.question != "" && !h.server.states.WaitsHere(about.question):
		if holder := h.server.states.Holder(ctx, about.question); holder != "" && holder != r.ID {
			at, _ := r.Find(ctx, holder)
			return at
		}
	case about.question == "" && about.process != "":
		return r.processes.Claim(ctx, about.process)
	}
	return cluster.Peer{}
}

// has reports whether this replica has what a request without a session is about. If it is to end, it
// leaves a call to the other replica that this one can run from its beginning.
func (h *HTTP) has(in *transport.Inbound) bool {
	about := h.server.concernOf(in)
	if about.question != "" {
		return h.server.states.WaitsHere(about.question) && (!h.draining.Load() || h.server.states.OnlyHere(about.question))
	}
	return about.process != "" && h.server.replica.processes.Has(about.process)
}
