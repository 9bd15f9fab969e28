package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/replica"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// Join makes this process one of the replicas that share the server's store, if there is one. When
// it returns, others can reach this process. The caller must call leave, which waits.
func (h *HTTP) Join(ctx context.Context) (leave func(), err error) {
	s, e := h.server, &h.endpoint
	if s.replica == nil {
		return func() {}, nil
	}
	return s.replica.Join(ctx, replica.Options{
		Sessions: &s.sessions, Calls: s.states, Tasks: s.tasks, Closing: &s.closing, Log: h.log,
		ProcessOf: e.processOf, Pass: e.pass, Begin: e.begin, Room: e.room, Replay: e.replay,
	})
}

// begin counts a request that another replica has forwarded until done is called, and waits for its
// turn. An error means that its client is gone.
func (e *endpoint) begin(in *transport.Inbound) (done func(), err error) {
	if e.oauth != nil {
		in.From = e.oauth.Vouched(in.From)
	}
	ctx, over := e.running.Add(auth.With(in.R.Context(), in.From), in.From)
	in.R = in.R.WithContext(ctx)
	if in.R.Method != http.MethodPost {
		return over, nil
	}
	e.calls.Add(1)
	end := func() { e.calls.Add(-1); over() }
	release, err := e.slots.Take(ctx, in.From.Name, cmp.Or(in.Session, "forwarded"))
	if err != nil {
		end()
		return nil, err
	}
	return func() { release(); end() }, nil
}

// room makes room for a session to take over. The error says why there is none.
func (e *endpoint) room(token string) error {
	switch {
	case e.draining.Load():
		return errLeaving
	case !e.server.sessions.MakeRoom(token, e.server.limits().MaxClients, true):
		return errFull
	}
	return nil
}

// processOf names the caller's own process of a server that a request needs (perClient); "" if it
// needs none.
func (e *endpoint) processOf(in *transport.Inbound) string {
	server := providerOf(e.server.offers, in)
	if server == nil || !server.Settings().PerClient {
		return ""
	}
	return in.From.Name + "\x00" + server.Info().Name
}

// providerOf returns the server that provides what a request names; nil if it names nothing, or no
// server provides it.
func providerOf(offers *current.Offers, in *transport.Inbound) *mcpclient.Source {
	o := offers.Common()
	if o == nil {
		return nil
	}
	params := jsonx.Get(in.Body, "params")
	name, _ := jsonx.Text(jsonx.Get(params, "name"))
	ctx := caller.With(in.R.Context(), in.From.Caller())
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
		if p, err := offers.ViewOf(ctx, o).Prompt(ctx, name); err == nil {
			return p.Server
		}
	case "resources/read":
		uri, _ := jsonx.Text(jsonx.Get(params, "uri"))
		if r, err := offers.ViewOf(ctx, o).Resource(ctx, uri); err == nil {
			return r.Server
		}
	}
	return nil
}

// replay passes the SDK a message that the client of a session has sent to another replica. The SDK
// has no other way to make its handler know a session.
func (e *endpoint) replay(ctx context.Context, session, method string, params any) {
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if !strings.HasPrefix(method, "notifications/") {
		message["id"] = "toolreg-replay"
	}
	body, _ := json.Marshal(message) // neither can fail
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, auth.Endpoint, bytes.NewReader(body))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	by := e.sessions
	if method == "initialize" {
		by = e.server.ids.Begin(by, session)
	} else {
		req.Header.Set("Mcp-Session-Id", session)
	}
	by.ServeHTTP(discarded{http.Header{}}, req)
}

// discarded is a response that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}
