package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// errInterrupted is what a client gets whose request another replica was handling.
var errInterrupted = errors.New("the connection to the process that was handling this request (serve.store) was interrupted; the request may have run in part, or still run")

// toPeer sends requests to another replica. It implements http.RoundTripper.
type toPeer struct {
	member *cluster.Member
	peer   cluster.Peer
}

// RoundTrip implements http.RoundTripper.
func (t toPeer) RoundTrip(r *http.Request) (*http.Response, error) { return t.member.Send(r, t.peer) }

// send passes a request to another replica and its answer to the client. If the error is
// [cluster.ErrNotThere] or [cluster.ErrRefused], nothing was done and there is no answer.
func (r *replica) send(in *transport.Inbound, to cluster.Peer) (failed error) {
	answer := transport.NewResponse(in.W, 0) // the other replica sends the comments
	defer answer.End()
	asked := in.R.Clone(in.R.Context())
	asked.Header.Del("Connection")                             // it could name headers that matter here
	for _, name := range []string{"Authorization", "Cookie"} { // the identity is what counts
		asked.Header.Del(name)
	}
	proxy := httputil.ReverseProxy{
		Transport: toPeer{r.Member, to}, FlushInterval: -1, ErrorLog: slog.NewLogLogger(r.http.opts.Log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Path: auth.Endpoint} // the identity has the profile
			tellSender(p.Out.Header, in.From)
			p.Out.Body, p.Out.ContentLength = http.NoBody, int64(len(in.Body))
			if len(in.Body) > 0 {
				p.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(in.Body)), nil }
				p.Out.Body, _ = p.Out.GetBody()
			}
		},
		ModifyResponse: func(a *http.Response) error {
			if strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
				a.Body = &eventsTo{ReadCloser: a.Body, request: in.Body, end: eventEnd}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			switch {
			case errors.Is(err, cluster.ErrNotThere) || errors.Is(err, cluster.ErrRefused):
				failed = err
			case in.R.Context().Err() == nil:
				answerInterrupted(w, in.Body)
			}
		},
	}
	proxy.ServeHTTP(answer, asked)
	return failed
}

// eventEnd is what every event ends with.
const eventEnd = "\n\n"

// eventsTo are the events of an answer. If they are interrupted between two events, an event of its own
// says so. Within an event nothing can be added that a client would read, so that the error is passed on,
// which breaks the connection to the client.
type eventsTo struct {
	io.ReadCloser
	request []byte
	end     string    // the last bytes so far, which are eventEnd between two events and before the first one
	last    io.Reader // what is read after the interruption; nil until then
}

// Read implements io.Reader.
func (e *eventsTo) Read(p []byte) (int, error) {
	if e.last != nil {
		return e.last.Read(p)
	}
	n, err := e.ReadCloser.Read(p)
	e.end += string(p[max(0, n-len(eventEnd)):n])
	e.end = e.end[max(0, len(e.end)-len(eventEnd)):]
	if err == nil || err == io.EOF || e.end != eventEnd {
		return n, err
	}
	e.last = bytes.NewReader(interrupted(e.request))
	return n, nil
}

// interrupted returns the event that ends the answer to a request; empty if the message is none.
func interrupted(message []byte) []byte {
	id, method := jsonx.Get(message, "id"), jsonx.Get(message, "method")
	if id == nil || method == nil {
		return nil
	}
	failure, _ := json.Marshal(jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: errInterrupted.Error()}) // cannot fail
	return fmt.Appendf(nil, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}\n\n", id, failure)
}

// answerInterrupted answers a request of whose answer nothing has arrived.
func answerInterrupted(w http.ResponseWriter, message []byte) {
	event := interrupted(message)
	if event == nil {
		http.Error(w, errInterrupted.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(event)
}

// forward passes a request to the replica that must handle it. It looks again which one that is
// until the request can be sent there, or handled here.
func (h *HTTP) forward(in *transport.Inbound, to cluster.Peer) {
	ctx := in.R.Context()
	for deadline := time.Now().Add(2 * cluster.Alive); ; {
		err := h.server.replica.send(in, to)
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Now().After(deadline) {
			h.opts.Log.Warn("request not forwarded", "to", to.Address, "reason", err.Error())
			h.storeAway(in.W, cluster.ErrNotThere)
			return
		}
		if pause(ctx, lookAgain) != nil {
			return
		}
		found := true
		switch {
		case in.Modern && errors.Is(err, cluster.ErrRefused): // the call ended just now
			to = cluster.Peer{}
		case in.Modern:
			to = h.whereIs(in)
		default:
			to, found = h.holderOf(in)
		}
		if !found {
			return
		}
		if to == (cluster.Peer{}) {
			h.pass(in, to)
			return
		}
	}
}

// storeAway answers a request that needs the store, or another replica.
func (h *HTTP) storeAway(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// forwarded handles a request that another replica forwards. It reports false, and does nothing, if
// what the request is about is not here.
func (h *HTTP) forwarded(w http.ResponseWriter, r *http.Request, from auth.Identity) bool {
	canceled := r.Context() // when this process ends, or the client is gone
	in := transport.NewInbound(w, r, from)
	if r.Method == http.MethodPost {
		var err error
		if in.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, transport.MaxBody)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		h.calls.Add(1) // before the look at draining, see [HTTP.has]
		defer h.calls.Add(-1)
	}
	if in.Modern && !h.has(in) || !in.Modern && !h.server.sessions.Belongs(in.Session, from.Account()) {
		return false
	}
	ctx, done := h.requests.Add(auth.With(canceled, from), from)
	defer done()
	in.R = r.WithContext(ctx)
	if r.Method == http.MethodPost {
		release, err := h.slots.Take(ctx, from.Name, cmp.Or(in.Session, "forwarded"))
		if err != nil {
			return true // the client is gone
		}
		defer release()
	}
	if !in.Modern {
		inUse, ok := h.server.sessions.Request(in.Session, from, r.Method == http.MethodGet)
		if !ok {
			return false
		}
		defer inUse()
	}
	h.pass(in, cluster.Peer{})
	if canceled.Err() != nil {
		panic(http.ErrAbortHandler) // the answer would look like a whole one
	}
	return true
}
