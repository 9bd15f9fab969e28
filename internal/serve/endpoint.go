package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// endpoint handles requests for the MCP endpoint, in the following steps. If a step returns an
// error, the request goes no further, and [entry.refuse] answers it.
//
//  1. sender: who sends it, and for which profile?
//  2. holder: which replica has the session?
//  3. post: what is the message, and may its client send it now?
//  4. passOn: which replica must handle it?
//  5. pass: give it to the SDK, which calls [requests].
type endpoint struct {
	entry
	server      *Server
	oauth       *auth.OAuth  // nil unless clients have access tokens
	loopback    bool         // only this machine can reach the address
	running     auth.Running // all requests
	calls       atomic.Int64 // the number of messages that are handled
	draining    atomic.Bool  // new messages are refused
	bodies      transport.Bodies
	slots       transport.Slots
	connections transport.Connections
	sessions    http.Handler // of the SDK, for revisions before 2026-07-28
	modern      http.Handler // of the SDK, without sessions
	open        transport.Open
}

// serve answers a request for a profile; "" means no profile.
func (e *endpoint) serve(w http.ResponseWriter, r *http.Request, profile string) {
	if err := e.handle(w, r, profile); err != nil {
		e.refuse(w, r, err)
	}
}

func (e *endpoint) handle(w http.ResponseWriter, r *http.Request, profile string) error {
	from, err := e.sender(r, profile)
	if err != nil {
		return err
	}
	if err := transport.CheckHeaders(r); err != nil {
		return err
	}
	ctx, done := e.running.Add(auth.With(r.Context(), from), from)
	defer done()
	in := transport.NewInbound(w, r.WithContext(ctx), from)
	at, err := e.holder(in)
	switch {
	case err != nil:
		return err
	case r.Method == http.MethodPost:
		return e.post(in, at)
	}
	return e.passOn(in, at)
}

// sender returns the sender of a request. profile is the one in the URL's path, or empty.
func (e *endpoint) sender(r *http.Request, profile string) (auth.Identity, error) {
	from, no := auth.Authenticate(r, e.tokens)
	if no != nil {
		return from, no
	}
	var ok bool
	if from.Profile, ok = e.server.Profiles().For(from.Profile, from.Groups, profile); !ok {
		return from, &auth.Rejection{
			Status: http.StatusNotFound, Reason: "not found: there is no such profile, or not for this client",
		}
	}
	from.Base = e.baseOf(r)
	return from, nil
}

// baseOf returns the beginning of the server's URLs: from the settings or, if only this machine can
// reach it, from the request. Otherwise it returns "", because a client could name another host,
// which would then receive the codes of logins.
func (e *endpoint) baseOf(r *http.Request) string {
	if e.oauth != nil {
		if base, ok := strings.CutSuffix(e.oauth.Settings().Audience.Value, auth.Endpoint); ok {
			return base
		}
		return ""
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	host, port, err := net.SplitHostPort(r.Host)
	switch {
	case !e.loopback || !ok || err != nil || port != strconv.Itoa(at.Port):
		return ""
	case !strings.EqualFold(host, "localhost") && !at.IP.Equal(net.ParseIP(host)):
		// Another program may listen at 127.0.0.2.
		return ""
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// holder returns the replica that has the session of a request. The zero value means this one, or
// any.
func (e *endpoint) holder(in *transport.Inbound) (cluster.Peer, error) {
	switch {
	case in.Session == "":
	case e.server.replica != nil:
		return e.server.replica.FindSession(in)
	case !e.server.sessions.Belongs(in.Session, in.From.Account()):
		return cluster.Peer{}, transport.ErrNoSession
	}
	return cluster.Peer{}, nil
}

// post reads a message and, if the client may send it now, passes it on when it is the client's
// turn.
func (e *endpoint) post(in *transport.Inbound, at cluster.Peer) (err error) {
	e.calls.Add(1) // before draining is checked, so that Drain waits for what it does not refuse
	draining := e.draining.Load()
	if draining {
		e.calls.Add(-1)
	} else {
		defer e.calls.Add(-1)
	}
	if in.Body, err = e.bodies.Read(in.W, in.R, in.From.Name); err != nil {
		return err
	}
	isRequest := jsonx.Get(in.Body, "id") != nil && jsonx.Get(in.Body, "method") != nil
	if draining && (in.Session == "" || isRequest || jsonx.KindOf(in.Body) != jsonx.Object) {
		return errLeaving // everything but answers for running calls and cancellations
	}
	done, err := e.slots.Take(in.R.Context(), in.From.Name, cmp.Or(in.Session, in.R.RemoteAddr))
	if err != nil {
		return err
	}
	defer done()
	for _, check := range []func(*transport.Inbound) error{
		matchHeaders, func(in *transport.Inbound) error { return transport.CheckBody(in.Body) },
		e.checkScopes, checkBegun, e.admit,
	} {
		if err := check(in); err != nil {
			return err
		}
	}
	return e.passOn(in, at)
}

// matchHeaders returns an error if a message contradicts the headers of its request.
func matchHeaders(in *transport.Inbound) error {
	switch {
	case !in.SameRevision():
		return in.Refusal(mcp.CodeHeaderMismatch,
			"the header Mcp-Protocol-Version and the message name different revisions of the protocol")
	case in.Modern && !task.Same(transport.NameOf(in.R.Header), in.Body):
		return in.Refusal(mcp.CodeHeaderMismatch, "the header Mcp-Name and the message name different tasks")
	}
	return nil
}

// checkBegun returns an error if a message needs a session but has none.
func checkBegun(in *transport.Inbound) error {
	if method := in.Member("method"); in.Modern || in.Session != "" || method == "" || method == "initialize" {
		return nil
	}
	return in.Refusal(jsonrpc.CodeInvalidRequest,
		"the header Mcp-Session-Id is missing: a session begins with initialize, and revision "+wire.FirstModern+
			" needs the header Mcp-Protocol-Version")
}

// checkScopes returns an error if a message calls tools for which its token lacks a scope (serve.oauth.scopes).
// Calls within a call, such as those of scripts, are checked when they are made, see package caller.
func (e *endpoint) checkScopes(in *transport.Inbound) error {
	if e.oauth == nil || len(e.oauth.Settings().Scopes) == 0 {
		return nil
	}
	for _, message := range transport.Messages(in.Body) {
		if method, _ := jsonx.Text(jsonx.Get(message, "method")); method != "tools/call" {
			continue
		}
		params := jsonx.Get(message, "params")
		name, _ := jsonx.Text(jsonx.Get(params, "name"))
		spellings := spellings(in.R.Context(), e.server.offers, in.From, name, jsonx.Get(params, "arguments"))
		if no := e.oauth.Permit(in.From, spellings...); no != nil {
			return no
		}
	}
	return nil
}

// spellings returns the names of the tool that a call runs and, if that is call_tool, of the tool
// that it reaches.
func spellings(ctx context.Context, offers *current.Offers, from auth.Identity, name string,
	arguments json.RawMessage) []string {
	out := []string{name}
	ctx = caller.With(ctx, from.Caller())
	if _, err := offers.Offered(ctx); err != nil { // the call fails too
		return out
	}
	v, done := offers.Use(ctx)
	defer done()
	if t := v.WithApps().Tool(name); t != nil {
		out = append(out, t.Tool.Called()...)
		if inner := t.Inner(arguments); inner != "" {
			out = append(out, inner)
		}
	}
	for _, one := range slices.Clone(out) {
		if t, err := v.Registry.Lookup(one); err == nil {
			out = append(out, t.Called()...)
		}
	}
	return out
}

// admit returns an error if the limit on clients does not permit a request. If possible, an idle
// session or connection makes room for a new one.
func (e *endpoint) admit(in *transport.Inbound) error {
	most, ok := e.server.limits().MaxClients, true
	switch {
	case in.Modern:
		var unused net.Conn
		if unused, ok = e.connections.Admit(in.R.Context(), in.From.Name, most); unused != nil {
			e.server.closing.Go(func() { _ = unused.Close() })
		}
	case in.Session == "":
		ok = e.server.sessions.MakeRoom(in.From.Name, most, in.Member("method") == "initialize")
	}
	if !ok {
		return errFull
	}
	return nil
}

var (
	errLeaving       = errors.New("shutting down")
	errFull    error = &transport.Refusal{Status: http.StatusServiceUnavailable, RetryAfter: 10,
		Reason: "too many clients, none of which is idle (serve.maxClients); " +
			"try again later, or end sessions that are not needed"}
)

// passOn passes a request to the replica that must handle it: at, unless the call that it
// continues, or something that it needs, is elsewhere. The zero value means this one.
func (e *endpoint) passOn(in *transport.Inbound, at cluster.Peer) error {
	if e.server.replica != nil {
		return e.server.replica.Forward(in, at)
	}
	return e.pass(in)
}

// newHandlers returns the SDK's handlers for requests with and without sessions.
func (s *Server) newHandlers() (sessions, modern http.Handler) {
	pick := func(*http.Request) *mcp.Server { return s.sdk }
	o := mcp.StreamableHTTPOptions{
		Logger: s.opts.Messages, MaxRequestBodyBytes: transport.MaxBody, DisableLocalhostProtection: true,
	}
	sessions = transport.Handler(mcp.NewStreamableHTTPHandler(pick, &o))
	o.Stateless, o.PropagateRequestCancellation = true, true
	return sessions, transport.Handler(mcp.NewStreamableHTTPHandler(pick, &o))
}

// pass gives the SDK a request. Before, it checks the remaining headers that repeat parts of the
// message.
func (e *endpoint) pass(in *transport.Inbound) error {
	if err := checkParams(e.server.offers, in); err != nil {
		return in.Refusal(mcp.CodeHeaderMismatch, err.Error())
	}
	by := e.sessions
	switch {
	case in.Modern:
		in.R.Header.Del("Mcp-Session-Id") // the revision has no sessions
		by = e.modern
	case in.Session == "":
		by = e.server.ids.Begin(by, rand.Text())
	default:
		done, ok := e.server.sessions.Request(in.Session, in.From, in.R.Method == http.MethodGet)
		if !ok { // the SDK may still be closing it, and would not answer
			return transport.ErrNoSession
		}
		defer done()
		if in.R.Method == http.MethodDelete {
			e.server.sessions.End(in.Session)
		}
	}
	e.open.Serve(in, by, e.server.limits().KeepAlive)
	return nil
}

// checkParams returns an error if headers that repeat the params of a call (revision 2026-07-28,
// x-mcp-header) contradict them. It does not wait for an offer.
func checkParams(offers *current.Offers, in *transport.Inbound) error {
	if !in.Modern || in.Member("method") != "tools/call" {
		return nil
	}
	// The client's own offer will include the offer for all.
	o := cmp.Or(offers.For(in.From.Name), offers.Common())
	if o == nil {
		return nil
	}
	params := jsonx.Get(in.Body, "params")
	name, _ := jsonx.Text(jsonx.Get(params, "name"))
	t := offers.View(o, in.From.Profile).WithApps().Tool(name)
	if t == nil {
		return nil
	}
	return wire.MatchParamHeaders(jsonx.Get(t.Raw, "inputSchema"), jsonx.Get(params, "arguments"), in.R.Header)
}
