package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/store"
)

// place says where a session is: here, or at another replica.
type place struct {
	holder cluster.Peer // zero: here
	found  bool
}

// locate returns where a session is that belongs to an account. If its holder has ended or
// given it up, this replica takes it over. The error is that of the store.
func (h *HTTP) locate(ctx context.Context, id string, from auth.Identity) (place, error) {
	r := h.server.replica
	for {
		if h.server.sessions.belongs(id, from.Account()) {
			return place{found: true}, nil
		}
		if r == nil {
			return place{}, nil
		}
		v, err := r.store.Get(ctx, sessionKind, id)
		if err != nil {
			return place{}, err
		}
		now, ok := readRecord(v)
		if !ok && r.Settling(ctx) { // the record may be written again
			if err := pause(ctx, lookAgain); err != nil {
				return place{}, err
			}
			continue
		}
		if !ok || now.Account != from.Account() {
			return place{}, nil
		}
		if now.Holder != "" && now.Holder != r.ID {
			holder, err := r.Find(ctx, now.Holder)
			if err != nil || holder != (cluster.Peer{}) {
				return place{holder, err == nil}, err
			}
		}
		if err := r.takeOver(ctx, id, v, now, from); err != nil {
			return place{}, err
		}
	}
}

var (
	errLeaving = errors.New("shutting down")
	errFull    = errors.New("too many clients (serve.maxClients)")
)

// takeOver makes this replica the holder of a session, unless another request or replica is
// faster.
func (r *replica) takeOver(ctx context.Context, id string, v store.Value, now sessionRecord, from auth.Identity) error {
	r.mu.Lock()
	if other := r.adopting[id]; other != nil {
		r.mu.Unlock()
		select {
		case <-other:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	over := make(chan struct{})
	r.adopting[id] = over
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.adopting, id)
		close(over)
	}()
	if r.server.sessions.belongs(id, from.Account()) {
		return nil
	}
	if r.http.draining.Load() {
		return errLeaving
	}
	ended, room := r.server.sessions.makeRoom(from.Name, r.server.limits().MaxClients, true)
	if ended != nil {
		r.server.closing.Go(func() { _ = ended.Close() })
	}
	if !room {
		return errFull
	}
	now.Holder = r.ID
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	value, swapped, err := r.store.Swap(ctx, sessionKind, id, v, data, recordTime)
	if err != nil || !swapped {
		return err
	}
	return r.adopt(ctx, id, now, value, from)
}

// adopt creates a session as its record describes it.
func (r *replica) adopt(ctx context.Context, id string, now sessionRecord, value store.Value, from auth.Identity) error {
	ctx = auth.With(context.WithoutCancel(ctx), from)
	transport := &mcp.StreamableServerTransport{SessionID: id}
	session, err := r.server.sdk.Connect(ctx, transport, &mcp.ServerSessionOptions{State: &now.State})
	if err != nil {
		return fmt.Errorf("taking over a session: %w", err)
	}
	r.records.add(id, &record{now: now, value: value})
	r.server.sessions.add(from, session)
	r.server.sessions.adopt(id, transport)
	r.server.opts.Log.Info("session taken over", "caller", from.Name)
	if len(now.Resources) > 0 {
		r.server.closing.Go(func() { subscribeAgain(ctx, transport, now.Resources) })
	}
	return nil
}

// subscribeAgain subscribes an adopted session to what it had subscribed to before.
func subscribeAgain(ctx context.Context, transport *mcp.StreamableServerTransport, uris []string) {
	ctx, stop := context.WithTimeout(ctx, renewWithin)
	defer stop()
	for i, uri := range slices.Clone(uris) {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": fmt.Sprintf("toolreg-again-%d", i), "method": "resources/subscribe", "params": map[string]any{"uri": uri}})
		if err != nil {
			return
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, auth.Endpoint, bytes.NewReader(body))
		if err != nil {
			return
		}
		transport.ServeHTTP(discarded{http.Header{}}, req)
	}
}

// discarded is a response that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d discarded) WriteHeader(int)             {}

// adoptedHandler returns what handles a request of a session that was taken over, as the SDK's
// handler does for those that began here; nil if it has answered the request.
func (h *HTTP) adoptedHandler(in *inbound, transport *mcp.StreamableServerTransport) http.Handler {
	switch in.r.Method {
	case http.MethodDelete:
		h.server.endSession(in.session)
		in.stream.WriteHeader(http.StatusNoContent)
		return nil
	case http.MethodPost:
		if kind, _, err := mime.ParseMediaType(in.r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			http.Error(in.stream, "Content-Type must be 'application/json'", http.StatusUnsupportedMediaType)
			return nil
		}
		in.replaceTask()
	}
	return withInbound(transport)
}
