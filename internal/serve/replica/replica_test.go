//go:build unix

package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/cluster"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/serve/task"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

const key = "0123456789abcdef0123456789abcdef"

// join starts a replica that handles requests by pass. Each needs the same process.
func join(t *testing.T, address string, pass func(*transport.Inbound) error) (r *Replica, leave func()) {
	t.Helper()
	shared, err := store.Open(address, key)
	if err != nil {
		t.Fatal(err)
	}
	shared.Limit = time.Minute // a busy machine may take longer than a use of the store may
	t.Cleanup(shared.Close)
	r = New(shared)
	leave, err = r.Join(context.WithoutCancel(t.Context()), Options{
		Sessions: &transport.Sessions{}, Closing: &sync.WaitGroup{}, Tasks: task.New(task.Options{}),
		Calls:     question.NewCalls(question.Options{Key: key, Store: shared}, r.ID),
		Log:       slog.New(slog.DiscardHandler),
		ProcessOf: func(*transport.Inbound) string { return "process" },
		Pass:      pass,
		Begin:     func(*transport.Inbound) (func(), error) { return func() {}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	leave = sync.OnceFunc(leave)
	t.Cleanup(leave)
	return r, leave
}

// A request of another replica has to say who sends it.
func TestForwardedRequestsNeedASender(t *testing.T) {
	address := storetest.Start(t).URL()
	pass := func(*transport.Inbound) error { t.Error("it was handled"); return nil }
	r, _ := join(t, address, pass)
	other, _ := join(t, address, pass)
	to, err := other.Find(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	someone := http.Header{}
	tellSender(someone, auth.Identity{Name: "x"})
	for _, tt := range []struct {
		path, sender string
		want         string
	}{
		{auth.Endpoint, "", "400"}, {auth.Endpoint, "{}", "400"}, {auth.Endpoint, "e30=", "400"}, {tasksPath, "", "400"}, {answersPath + "1", "", "400"},
		{auth.Endpoint, someone.Get(senderHeader), cluster.ErrRefused.Error()}, {tasksPath, someone.Get(senderHeader), cluster.ErrRefused.Error()},
		{answersPath + "1", someone.Get(senderHeader), cluster.ErrRefused.Error()}, {"/console", someone.Get(senderHeader), cluster.ErrRefused.Error()},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(senderHeader, tt.sender)
		got := ""
		if resp, err := other.Send(req, to); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(resp.StatusCode)
			_ = resp.Body.Close()
		}
		if got != tt.want {
			t.Errorf("%s %q: %s", tt.path, tt.sender, got)
		}
	}
}

// A client gets an error if the replica that runs its call ends before it.
func TestStoppedCallIsAnError(t *testing.T) {
	address, began := storetest.Start(t).URL(), make(chan struct{})
	r, leave := join(t, address, func(in *transport.Inbound) error { close(began); <-in.R.Context().Done(); return nil })
	other, _ := join(t, address, func(*transport.Inbound) error { return errors.New("the call runs at the replica where it arrived") })
	call := func() (*transport.Inbound, *httptest.ResponseRecorder) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, auth.Endpoint, nil)
		req.Header.Set("Mcp-Protocol-Version", wire.FirstModern)
		w := httptest.NewRecorder()
		in := transport.NewInbound(w, req, auth.Identity{Name: "x"})
		in.Body = json.RawMessage(`{"jsonrpc":"2.0","id":"a","method":"tools/call"}`)
		return in, w
	}
	if in, _ := call(); r.findCall(in) != (cluster.Peer{}) {
		t.Error("the first replica does not have the process")
	}
	in, w := call()
	at := other.findCall(in)
	if at.ID != r.ID {
		t.Fatalf("the other replica finds it at %+v", at)
	}
	go func() { <-began; leave() }()
	if err := other.Forward(in, cluster.Peer{}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(w.Body.String(), "was interrupted") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
