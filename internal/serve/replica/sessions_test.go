//go:build unix

package replica

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

// A replica that others may have taken for dead handles no request of a session that one of them has now.
func TestSessionThatWasTakenOverIsNotUsed(t *testing.T) {
	shared, err := store.Open(storetest.Start(t).URL(), key)
	if err != nil {
		t.Fatal(err)
	}
	shared.Limit = time.Minute // a busy machine may take longer than a use of the store may
	t.Cleanup(shared.Close)
	ctx, alice, mayClose := t.Context(), auth.Identity{Name: "alice"}, make(chan struct{})
	var closed, asked bool
	r := New(shared)
	r.opts = Options{Sessions: &transport.Sessions{}, Closing: &sync.WaitGroup{}, Room: func(string) error {
		if !closed {
			t.Error("the session is taken over before it is closed")
		}
		asked = true
		return errors.New("no room")
	}}
	one := &record{now: sessionRecord{
		Holder: r.ID, Account: alice.Account(), State: mcp.ServerSessionState{InitializeParams: &mcp.InitializeParams{}},
	}}
	r.records.Store("s", one)
	r.opts.Sessions.Add(alice, session(func() { <-mayClose; closed = true }))
	r.change(ctx, "s", func(*sessionRecord) {})

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, auth.Endpoint, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", "s")
	in := transport.NewInbound(httptest.NewRecorder(), req, alice)
	r.Settling(ctx) // others find that it does not live
	if holder, err := r.FindSession(in); err != nil || holder.ID != "" {
		t.Errorf("before: %+v %v", holder, err)
	}
	other := New(shared)
	if err := shared.Put(ctx, "replica", other.ID, []byte("127.0.0.1:1"), time.Minute); err != nil {
		t.Fatal(err)
	}
	taken := &record{now: one.now, value: one.value}
	taken.now.Holder = other.ID
	if held, err := other.writeRecord(ctx, "s", taken); !held || err != nil {
		t.Fatal(held, err)
	}
	within, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for holder, err := r.FindSession(in); holder.ID != other.ID; holder, err = r.FindSession(in) {
		if err != nil || within.Err() != nil { // a store under load may answer too late for one request
			t.Fatalf("after: %+v %v", holder, err)
		}
		r.Settling(ctx)
	}

	// The other replica is gone, so that this one may have the session again.
	if err := shared.Delete(ctx, "replica", other.ID); err != nil {
		t.Fatal(err)
	}
	briefly, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if _, err := r.FindSession(transport.NewInbound(httptest.NewRecorder(), req.WithContext(briefly), alice)); err == nil {
		t.Error("it is found before it is closed")
	}
	close(mayClose)
	if _, err := r.FindSession(in); err == nil || !asked {
		t.Errorf("found: %v, asked for room: %v", err, asked)
	}
}

// session is the session s, which is closed by a function.
type session func()

func (session) ID() string     { return "s" }
func (s session) Close() error { s(); return nil }
