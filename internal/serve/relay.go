package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/store"
)

// The kinds of messages between replicas: a request, the parts of its answer, and that the
// client is gone.
const (
	relayRequest = "request"
	relayHead    = "head"
	relayBody    = "body"
	relayEnd     = "end"
	relayStopped = "stopped" // the receiver did not finish the request
	relayRefused = "refused" // nothing was done: the receiver does not have the session
	relayCancel  = "cancel"
	relayAnswer  = "answer" // of a client, to what the answer to its request asks
)

const (
	// maxPart is the maximum size of a part of an answer, and maxUnread how much of one may
	// wait until its client has read what comes before.
	maxPart   = 256 << 10
	maxUnread = 32 << 20
	// relayAge is how old a request may be that a replica accepts; their clocks may differ.
	relayAge = time.Minute
	// lookAgain is how long a replica waits before it looks again where a session is.
	lookAgain = 50 * time.Millisecond
)

// relayMessage is a message between replicas. It is sealed by the store.
type relayMessage struct {
	Kind   string         `json:"kind"`
	ID     string         `json:"id"` // of the relay
	From   string         `json:"from"`
	Seq    int            `json:"seq,omitempty"` // of the parts of an answer
	Sent   int64          `json:"sent,omitempty"`
	Method string         `json:"method,omitempty"`
	Header http.Header    `json:"header,omitempty"`
	Status int            `json:"status,omitempty"`
	Sender *relayedSender `json:"sender,omitempty"`
	body   []byte
}

// relayedSender is the identity of the sender of a request.
type relayedSender struct {
	Name    string    `json:"name"`
	Groups  []string  `json:"groups,omitempty"`
	Profile string    `json:"profile,omitempty"`
	Expires time.Time `json:"expires"`
	Scopes  []string  `json:"scopes,omitempty"`
	Console bool      `json:"console,omitempty"`
	Sum     tokenHash `json:"sum"`
	Base    string    `json:"base,omitempty"`
}

var errForeignMessage = errors.New("not a message of a replica")

// encode returns the length of the message without its body, that message, and the body.
func (m *relayMessage) encode() ([]byte, error) {
	head, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(head))), head...), m.body...), nil
}

func decodeMessage(data []byte) (*relayMessage, error) {
	if len(data) < 4 || uint64(binary.BigEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, errForeignMessage
	}
	n := int(binary.BigEndian.Uint32(data))
	m := &relayMessage{}
	if json.Unmarshal(data[4:4+n], m) != nil || m.ID == "" || m.From == "" {
		return nil, errForeignMessage
	}
	m.body = data[4+n:]
	return m, nil
}

// send sends a message to a replica. It returns errNotThere if that one is not connected.
func (r *replica) send(ctx context.Context, to string, m *relayMessage) error {
	m.From = r.id
	data, err := m.encode()
	if err != nil {
		return err
	}
	n, err := r.store.Send(ctx, to, data)
	if err == nil && n == 0 {
		return errNotThere
	}
	return err
}

var errNotThere = errors.New("the replica is not connected to the store")

// receive handles a message of another replica. It does not wait.
func (r *replica) receive(ctx context.Context, data []byte) {
	m, err := decodeMessage(data)
	if err != nil {
		return
	}
	switch m.Kind {
	case relayRequest:
		r.serve(ctx, m)
	case relayCancel:
		r.served.end(m.ID, m.From)
	case relayAnswer:
		r.answered(m)
	default:
		r.relays.deliver(m)
	}
}

// relay is a request that another replica answers.
type relay struct {
	to string

	mu     sync.Mutex
	parts  []*relayMessage
	size   int
	next   int           // expected Seq
	err    error         // after the parts
	signal chan struct{} // has an element if there is something new
}

// relays are the relays whose answers this replica passes to clients.
type relays struct {
	mu   sync.Mutex
	byID map[string]*relay
}

func (r *relays) add(id, to string) *relay {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &relay{to: to, signal: make(chan struct{}, 1)}
	r.byID[id] = one
	return one
}

func (r *relays) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

func (r *relays) addPeers(peers map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.byID {
		peers[one.to] = true
	}
}

// fail ends the relays to a replica, or to all if it is "".
func (r *relays) fail(to string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.byID {
		if to == "" || one.to == to {
			one.fail(err)
		}
	}
}

// deliver adds a part to the answer that it belongs to. Those of other replicas are dropped.
func (r *relays) deliver(m *relayMessage) {
	r.mu.Lock()
	one := r.byID[m.ID]
	r.mu.Unlock()
	if one != nil && one.to == m.From {
		one.deliver(m)
	}
}

func (o *relay) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		o.notify()
	}
}

func (o *relay) notify() {
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

func (o *relay) deliver(m *relayMessage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return
	}
	o.size += len(m.body)
	switch {
	case m.Seq != o.next:
		o.err = errLost
	case o.size > maxUnread:
		o.err = errors.New("the client reads the answer too slowly")
	default:
		o.next++
		o.parts = append(o.parts, m)
	}
	o.notify()
}

// part waits for the next part of the answer.
func (o *relay) part(ctx context.Context) (*relayMessage, error) {
	for {
		o.mu.Lock()
		if len(o.parts) > 0 {
			m := o.parts[0]
			o.parts = o.parts[1:]
			o.size -= len(m.body)
			o.mu.Unlock()
			return m, nil
		}
		err := o.err
		o.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-o.signal:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// errElsewhereNow reports that a relayed request was not handled, because the replica does not
// have what it is about (any more).
var errElsewhereNow = errors.New("the replica does not have the session")

// relay passes a request to another replica and its answer to w. If the error is
// errNotThere, errElsewhereNow or that of the store, nothing was done and w is unused.
func (r *replica) relay(ctx context.Context, w http.ResponseWriter, method string, header http.Header, from identity, to string, body []byte) error {
	header = header.Clone()
	header.Del("Authorization") // the identity is what counts
	header.Del("Cookie")
	m := &relayMessage{Kind: relayRequest, ID: rand.Text(), Sent: time.Now().Unix(), Method: method, Header: header, body: body,
		Sender: &relayedSender{from.name, from.groups, from.profile, from.expires, from.scopes, from.console, from.sum, from.base}}
	if !r.connected.Load() {
		return errNotThere // its answer could not arrive
	}
	one := r.relays.add(m.ID, to)
	defer r.relays.remove(m.ID)
	if err := r.send(ctx, to, m); err != nil {
		if _, away := errors.AsType[*store.AwayError](err); away { // it may have arrived
			r.cancel(ctx, to, m.ID)
			relayFailed(w, false, body, errLost)
			return nil
		}
		return err
	}
	stream := newSteady(w, 0) // the other replica sends the comments
	defer stream.end()
	begun := false
	for {
		part, err := one.part(ctx)
		if err != nil {
			r.cancel(ctx, to, m.ID)
			if ctx.Err() == nil {
				relayFailed(stream, begun, body, err)
			}
			return nil
		}
		switch part.Kind {
		case relayRefused:
			return errElsewhereNow
		case relayHead:
			begun = true
			for name, values := range part.Header {
				stream.Header()[name] = values
			}
			stream.WriteHeader(part.Status)
			stream.Flush()
		case relayBody:
			if _, err := stream.Write(part.body); err != nil {
				r.cancel(ctx, to, m.ID)
				return nil
			}
			stream.Flush()
		case relayStopped:
			relayFailed(stream, begun, body, errLost)
			return nil
		case relayEnd:
			return nil
		}
	}
}

// cancel tells a replica that nobody waits for an answer any more.
func (r *replica) cancel(ctx context.Context, to, id string) {
	ctx = context.WithoutCancel(ctx)
	r.server.closing.Go(func() { _ = r.send(ctx, to, &relayMessage{Kind: relayCancel, ID: id}) })
}

// relayFailed answers a request whose answer from another replica is lost. A client that waits
// for the result of a call gets an error; other streams end.
func relayFailed(w http.ResponseWriter, begun bool, body []byte, err error) {
	id, method := jsonx.Get(body, "id"), jsonx.Get(body, "method")
	if id == nil || method == nil {
		if !begun {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
		return
	}
	if !begun {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
	}
	failure, _ := json.Marshal(jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}) // cannot fail
	_, _ = fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}\n\n", id, failure)
}

// passOn relays a request to the replica that must handle it. It looks again which one that is
// until the request can be relayed, or handled here.
func (h *HTTP) passOn(w http.ResponseWriter, r *http.Request, from identity, modern bool, id, to string) {
	body, err := io.ReadAll(r.Body) // in memory already
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for deadline := time.Now().Add(2 * alive); ; {
		err := h.server.replica.relay(r.Context(), w, r.Method, r.Header, from, to, body)
		if err == nil || r.Context().Err() != nil {
			return
		}
		if !errors.Is(err, errNotThere) && !errors.Is(err, errElsewhereNow) || time.Now().After(deadline) {
			h.storeAway(w, err)
			return
		}
		if pause(r.Context(), lookAgain) != nil {
			return
		}
		at := place{found: true}
		switch {
		case modern && errors.Is(err, errElsewhereNow): // the call ended just now
			err = nil
		case modern:
			at.holder, err = h.whereIs(r.Context(), body, from), nil
		default:
			at, err = h.locate(r.Context(), id, from)
		}
		switch {
		case err != nil:
			h.storeAway(w, err)
			return
		case !at.found:
			http.Error(w, "session not found", http.StatusNotFound)
			return
		case at.holder == "":
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.pass(w, r, from, modern, id, "")
			return
		}
		to = at.holder
	}
}

// storeAway answers a request that needs the store.
func (h *HTTP) storeAway(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
