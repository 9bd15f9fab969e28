//go:build unix

package replica

import (
	"context"
	"log/slog"
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
	shared, err := store.Open(storetest.Start(t).URL(), "0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Close)
	ctx, alice, closed := t.Context(), auth.Identity{Name: "alice"}, make(chan string, 1)
	sessions := &transport.Sessions{Close: func(session transport.Session) { closed <- session.ID() }}
	r := New(shared)
	r.opts = Options{Sessions: sessions, Closing: &sync.WaitGroup{}, Log: slog.New(slog.DiscardHandler)}
	one := &record{now: sessionRecord{
		Holder: r.ID, Account: alice.Account(), State: mcp.ServerSessionState{InitializeParams: &mcp.InitializeParams{}},
	}}
	r.records.Store("s", one)
	sessions.Add(alice, session("s"))
	r.change(ctx, "s", func(*sessionRecord) {})

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, auth.Endpoint, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", "s")
	in := transport.NewInbound(httptest.NewRecorder(), req, alice)
	r.Settling(ctx) // others find that it does not live
	if holder, ok := r.FindSession(in); !ok || holder.ID != "" {
		t.Errorf("before: %+v %v", holder, ok)
	}
	other := New(shared)
	if err := shared.Put(ctx, "replica", other.ID, []byte("127.0.0.1:1"), time.Minute); err != nil {
		t.Fatal(err)
	}
	taken := &record{now: one.now, value: one.value}
	taken.now.Holder = other.ID
	if held, err := other.write(ctx, "s", taken); !held || err != nil {
		t.Fatal(held, err)
	}
	within, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for holder, ok := r.FindSession(in); holder.ID != other.ID; holder, ok = r.FindSession(in) {
		if !ok || within.Err() != nil { // a store under load may answer too late for one request
			t.Fatalf("after: %+v %v", holder, ok)
		}
		r.Settling(ctx)
	}
	if id := <-closed; id != "s" {
		t.Errorf("closed: %q", id)
	}
}

// session is a session by its ID.
type session string

func (s session) ID() string { return string(s) }
func (session) Close() error { return nil }
