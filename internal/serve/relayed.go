package serve

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
)

// servedRelay is a request that this replica handles for another one.
type servedRelay struct {
	from   string // the replica where the client is
	cancel context.CancelFunc
}

// served are the requests that this replica handles for others. It is safe for concurrent use.
type served struct {
	running sync.WaitGroup

	mu    sync.Mutex
	byID  map[string]*servedRelay
	seen  map[string]time.Time // requests that have arrived, so that none is handled twice
	swept time.Time            // when old ones were forgotten
}

// add records a request. It reports false if it has arrived before.
func (s *served) add(id string, one *servedRelay) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.swept) > relayAge {
		maps.DeleteFunc(s.seen, func(_ string, at time.Time) bool { return now.Sub(at) > 4*relayAge })
		s.swept = now
	}
	if _, again := s.seen[id]; again {
		return false
	}
	s.seen[id], s.byID[id] = now, one
	return true
}

func (s *served) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, id)
}

// end cancels a request, because its client is gone.
func (s *served) end(id, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.byID[id]; one != nil && one.from == from {
		one.cancel()
	}
}

// cancel cancels the requests that came from a replica, or from all if it is "".
func (s *served) cancel(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.byID {
		if from == "" || one.from == from {
			one.cancel()
		}
	}
}

func (s *served) addPeers(peers map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.byID {
		peers[one.from] = true
	}
}

// serve handles a request that arrived at another replica, in a goroutine.
func (r *replica) serve(ctx context.Context, m *relayMessage) {
	age := time.Since(time.Unix(m.Sent, 0))
	if m.Sender == nil || age > relayAge || age < -relayAge || len(m.body) > maxBody {
		return
	}
	from := identity{name: m.Sender.Name, groups: m.Sender.Groups, profile: m.Sender.Profile, expires: m.Sender.Expires, scopes: m.Sender.Scopes, console: m.Sender.Console, sum: m.Sender.Sum, base: m.Sender.Base}
	if o := r.http.opts.OAuth; o != nil {
		from.under = o.current.Load()
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, identityKey{}, from))
	if !r.served.add(m.ID, &servedRelay{m.From, cancel}) {
		cancel()
		return
	}
	r.served.running.Go(func() {
		defer r.served.remove(m.ID)
		defer cancel()
		w := &relayWriter{ctx: ctx, replica: r, to: m.From, id: m.ID, header: http.Header{}, cancel: cancel}
		if !r.http.relayed(w, m, from) {
			w.send(&relayMessage{Kind: relayRefused})
			return
		}
		if ctx.Err() != nil {
			w.send(&relayMessage{Kind: relayStopped})
			return
		}
		w.WriteHeader(http.StatusOK) // without an answer
		w.send(&relayMessage{Kind: relayEnd})
	})
}

// relayed handles a request that arrived at another replica. It reports false, and does
// nothing, if what the request is about is not here.
func (h *HTTP) relayed(w *relayWriter, m *relayMessage, from identity) bool {
	if by := taskMethodOf(m.Method); by.modern != nil || by.legacy != nil {
		return h.relayedAboutTask(w, m, from)
	}
	r, err := http.NewRequestWithContext(w.ctx, m.Method, endpoint, io.NopCloser(bytes.NewReader(m.body)))
	if err != nil {
		return false
	}
	if m.Header != nil {
		r.Header = m.Header
	}
	id, modern := r.Header.Get("Mcp-Session-Id"), isModern(r)
	if modern && !h.has(r.Context(), m.body, from) || !modern && !h.server.sessions.belongs(id, from.account()) {
		return false
	}
	ctx, done := h.requests.add(r.Context(), from)
	defer done()
	r = r.WithContext(ctx)
	if r.Method == http.MethodPost {
		h.calls.Add(1)
		defer h.calls.Add(-1)
		release, err := h.slots.Take(ctx, from.name, cmp.Or(id, "relayed"))
		if err != nil {
			return true // the client is gone
		}
		defer release()
	}
	if !modern {
		inUse, ok := h.server.sessions.request(id, from, r.Method == http.MethodGet)
		if !ok {
			return false
		}
		defer inUse()
	}
	h.pass(w, r, from, modern, id, "")
	return true
}

// relayWriter sends an answer to the replica where the client is.
type relayWriter struct {
	ctx     context.Context
	replica *replica
	to, id  string
	header  http.Header
	cancel  context.CancelFunc

	mu   sync.Mutex
	sent bool // the head
	seq  int
	err  error
}

// Header implements http.ResponseWriter.
func (w *relayWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *relayWriter) WriteHeader(status int) {
	w.mu.Lock()
	sent := w.sent
	w.sent = true
	w.mu.Unlock()
	if !sent {
		w.send(&relayMessage{Kind: relayHead, Status: status, Header: w.header.Clone()})
	}
}

// Write implements http.ResponseWriter.
func (w *relayWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n := 0
	for len(p) > 0 {
		part := p[:min(len(p), maxPart)]
		if err := w.send(&relayMessage{Kind: relayBody, body: part}); err != nil {
			return n, err
		}
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}

// send sends a part. After an error nobody can read what follows.
func (w *relayWriter) send(m *relayMessage) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	m.ID, m.Seq = w.id, w.seq
	w.seq++
	if w.err = w.replica.send(context.WithoutCancel(w.ctx), w.to, m); w.err != nil {
		w.cancel()
	}
	return w.err
}
