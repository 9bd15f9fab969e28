package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/store"
)

// holderOf returns the other replica that holds the session of a request; the zero value is this one. If
// there is no such session, or the store does not say where it is, it answers the request and reports false.
func (h *HTTP) holderOf(in *transport.Inbound) (holder cluster.Peer, ok bool) {
	holder, ok, err := h.locate(in.R.Context(), in.Session, in.From)
	switch {
	case err != nil:
		h.storeAway(in.W, err)
		return cluster.Peer{}, false
	case !ok:
		http.Error(in.W, "session not found", http.StatusNotFound)
	}
	return holder, ok
}

// locate returns the other replica that holds a session of an account; the zero value is this one. If
// the holder has ended or given the session up, this replica takes it over. The error is that of the store.
func (h *HTTP) locate(ctx context.Context, id string, from auth.Identity) (holder cluster.Peer, ok bool, err error) {
	r := h.server.replica
	for {
		if h.server.sessions.Belongs(id, from.Account()) {
			return cluster.Peer{}, true, nil
		}
		if r == nil {
			return cluster.Peer{}, false, nil
		}
		v, err := r.store.Get(ctx, sessionKind, id)
		if err != nil {
			return cluster.Peer{}, false, err
		}
		now, ok := readRecord(v)
		if !ok && r.Settling(ctx) { // the record may be written again
			if err := pause(ctx, lookAgain); err != nil {
				return cluster.Peer{}, false, err
			}
			continue
		}
		if !ok || now.Account != from.Account() {
			return cluster.Peer{}, false, nil
		}
		if now.Holder != "" && now.Holder != r.ID {
			holder, err := r.Find(ctx, now.Holder)
			if err != nil || holder != (cluster.Peer{}) {
				return holder, err == nil, err
			}
		}
		if err := r.takeOver(ctx, id, v, now, from); err != nil {
			return cluster.Peer{}, false, err
		}
	}
}

var (
	errLeaving = errors.New("shutting down")
	errFull    = errors.New("too many clients, none of which is idle (serve.maxClients); try again later, or end sessions that are not needed")
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
	if r.server.sessions.Belongs(id, from.Account()) {
		return nil
	}
	if r.http.draining.Load() {
		return errLeaving
	}
	ended, room := r.server.sessions.MakeRoom(from.Name, r.server.limits().MaxClients, true)
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

// adopt begins a session as its record describes it.
func (r *replica) adopt(ctx context.Context, id string, now sessionRecord, value store.Value, from auth.Identity) error {
	ctx = auth.With(context.WithoutCancel(ctx), from)
	r.records.add(id, &record{now: now, value: value})
	r.http.replay(ctx, id, "initialize", now.State.InitializeParams)
	if !r.server.sessions.Belongs(id, from.Account()) {
		r.records.remove(id)
		return errors.New("taking over a session: it cannot begin again")
	}
	r.http.replay(ctx, id, "notifications/initialized", struct{}{})
	if now.State.LogLevel != "" {
		r.http.replay(ctx, id, "logging/setLevel", &mcp.SetLoggingLevelParams{Level: now.State.LogLevel})
	}
	r.server.opts.Log.Info("session taken over", "caller", from.Name)
	if len(now.Resources) > 0 {
		r.server.closing.Go(func() {
			ctx, stop := context.WithTimeout(ctx, renewWithin)
			defer stop()
			for _, uri := range slices.Clone(now.Resources) {
				r.http.replay(ctx, id, "resources/subscribe", &mcp.SubscribeParams{URI: uri})
			}
		})
	}
	return nil
}

// replay passes to the SDK a message that the client of a session has sent to another replica. The SDK
// has no other way to make a session known to its handler.
func (h *HTTP) replay(ctx context.Context, session, method string, params any) {
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if !strings.HasPrefix(method, "notifications/") {
		message["id"] = "toolreg-replay"
	}
	body, err := json.Marshal(message)
	if err != nil {
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, auth.Endpoint, bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	by := h.sessions
	if method == "initialize" {
		by = h.server.ids.Begin(by, session)
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
