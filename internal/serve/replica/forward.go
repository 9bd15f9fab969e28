package replica

import (
	"bytes"
	"encoding/base64"
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
	"github.com/toolreg/toolreg/internal/timing"
)

// errInterrupted is the error for a client whose request another replica was handling when the
// connection broke.
var errInterrupted = errors.New("the connection to the process that was handling this request (serve.store) was " +
	"interrupted; the request may have run in part, or still run")

// toPeer sends requests to another replica. It implements http.RoundTripper.
type toPeer struct {
	member *cluster.Member
	peer   cluster.Peer
}

func (t toPeer) RoundTrip(r *http.Request) (*http.Response, error) { return t.member.Send(r, t.peer) }

// send passes a request to another replica, and its answer to the client. If the error is
// [cluster.ErrNotThere] or [cluster.ErrRefused], nothing was done and there is no answer.
func (r *Replica) send(in *transport.Inbound, to cluster.Peer) (failed error) {
	answer := transport.NewResponse(in.W, 0) // the other replica sends the comments
	defer answer.End()
	asked := in.R.Clone(in.R.Context())
	asked.Header.Del("Connection")                             // it could name headers that matter here
	for _, name := range []string{"Authorization", "Cookie"} { // the identity is used instead
		asked.Header.Del(name)
	}
	proxy := httputil.ReverseProxy{
		Transport: toPeer{r.Member, to}, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(r.opts.Log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = &url.URL{Path: auth.Endpoint} // the identity contains the profile
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

// eventEnd ends every event.
const eventEnd = "\n\n"

// eventsTo are the events of an answer. If they are interrupted between two events, it adds an
// event that says so. Within an event, nothing that a client would read can be added, so the error
// is passed on, which breaks the connection to the client.
type eventsTo struct {
	io.ReadCloser
	request []byte
	end     string    // the last bytes so far; eventEnd before the first event and between two events
	last    io.Reader // what is read after the interruption
}

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

// interrupted returns the event that ends the answer to a request; empty if the message is not a
// request.
func interrupted(message []byte) []byte {
	id, method := jsonx.Get(message, "id"), jsonx.Get(message, "method")
	if id == nil || method == nil {
		return nil
	}
	failure, _ := json.Marshal(jsonrpc.Error{ // cannot fail
		Code: jsonrpc.CodeInternalError, Message: errInterrupted.Error(),
	})
	return fmt.Appendf(nil, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}\n\n", id, failure)
}

// answerInterrupted answers a request for which no answer has arrived.
func answerInterrupted(w http.ResponseWriter, message []byte) {
	event := interrupted(message)
	if event == nil {
		http.Error(w, errInterrupted.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(event)
}

// Forward passes a request to the replica that must handle it: to, which has its session, or the
// one that [Replica.findCall] finds. If the request cannot be sent there, it looks again, until the
// request was sent or must be handled here.
func (r *Replica) Forward(in *transport.Inbound, to cluster.Peer) (err error) {
	ctx := in.R.Context()
	if in.Modern {
		to = r.findCall(in)
	}
	for deadline := time.Now().Add(2 * cluster.Alive); to != (cluster.Peer{}); {
		failed := r.send(in, to)
		if failed == nil {
			return nil
		}
		if time.Now().After(deadline) {
			r.opts.Log.Warn("request not forwarded", "to", to.Address, "reason", failed.Error())
			return cluster.ErrNotThere
		}
		if err := timing.Pause(ctx, lookAgain); err != nil {
			return err
		}
		switch {
		case in.Modern && errors.Is(failed, cluster.ErrRefused): // the call has just ended
			to = cluster.Peer{}
		case in.Modern:
			to = r.findCall(in)
		default:
			if to, err = r.FindSession(in); err != nil {
				return err
			}
		}
	}
	return r.opts.Pass(in)
}

// forwarded handles a request that another replica has forwarded. If what the request is about is
// not here, it does nothing and returns false.
func (r *Replica) forwarded(in *transport.Inbound) bool {
	canceled := in.R.Context() // when this process ends, or the client is gone
	// Begin comes before has checks whether this replica is leaving, so that Drain waits for every
	// request that is not refused.
	done, err := r.opts.Begin(in)
	if err != nil {
		return false
	}
	defer done()
	if in.Modern {
		if !r.has(in) {
			return false
		}
	} else if inUse, ok := r.opts.Sessions.Request(in.Session, in.From, in.R.Method == http.MethodGet); ok {
		defer inUse()
	} else {
		return false
	}
	if err := r.opts.Pass(in); err != nil {
		transport.Refuse(in.W, err)
	}
	if canceled.Err() != nil {
		panic(http.ErrAbortHandler) // otherwise the answer would look complete
	}
	return true
}

// findCall returns the other replica that must handle a request without a session. The zero value
// means this one, or any. While the store is unavailable, it is this one.
func (r *Replica) findCall(in *transport.Inbound) cluster.Peer {
	ctx := in.R.Context()
	switch question, process := r.needs(in); {
	case question != "" && !r.opts.Calls.WaitsHere(question):
		if holder := r.opts.Calls.Holder(ctx, question); holder != "" && holder != r.ID {
			at, _ := r.Find(ctx, holder)
			return at
		}
	case process != "":
		return r.processes.Claim(ctx, process)
	}
	return cluster.Peer{}
}

// has reports whether this replica has what a request without a session needs. A leaving replica
// leaves a call to the other one if that can run the call from its beginning.
func (r *Replica) has(in *transport.Inbound) bool {
	question, process := r.needs(in)
	if question != "" {
		return r.opts.Calls.WaitsHere(question) && (!r.leaving.Load() || r.opts.Calls.OnlyHere(question))
	}
	return r.processes.Has(process)
}

// needs returns what ties a request without a session to a replica: the ID of the question that it
// answers, or the caller's own process that it needs. Most requests need neither.
func (r *Replica) needs(in *transport.Inbound) (question, process string) {
	sealed, _ := jsonx.Text(jsonx.Get(jsonx.Get(in.Body, "params"), "requestState"))
	if question = r.opts.Calls.QuestionOf(sealed, in.From.Account()); question != "" {
		return question, ""
	}
	return "", r.opts.ProcessOf(in)
}

// senderHeader has the identity of the client in a forwarded request.
const senderHeader = "Toolreg-Sender"

// tellSender sets the header with the sender's identity. Only replicas receive it.
func tellSender(header http.Header, from auth.Identity) {
	data, _ := json.Marshal(from) // cannot fail
	header.Set(senderHeader, base64.StdEncoding.EncodeToString(data))
}

// senderOf returns the sender of a forwarded request, and removes the header that has it.
func senderOf(r *http.Request) (from auth.Identity, ok bool) {
	data, err := base64.StdEncoding.DecodeString(r.Header.Get(senderHeader))
	if r.Header.Del(senderHeader); err != nil || json.Unmarshal(data, &from) != nil || from.Name == "" {
		return auth.Identity{}, false
	}
	return from, true
}
