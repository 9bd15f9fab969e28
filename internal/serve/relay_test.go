//go:build unix

package serve

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

func FuzzRelayMessage(f *testing.F) {
	data, err := (&relayMessage{Kind: relayBody, ID: "1", From: "2", Header: http.Header{"A": {"b"}}, body: []byte("x")}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{255, 255, 255, 255, '{'})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMessage(data)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if other, err := decodeMessage(again); err != nil || other.ID != m.ID || string(other.body) != string(m.body) {
			t.Errorf("%+v, %v", other, err)
		}
	})
}

// A request that arrives again, or late, is not handled.
func TestRelayedRequestsAreHandledOnce(t *testing.T) {
	replicas := newSharing(t, nil, nil, storetest.Start(t).URL())
	r := replicas[0].server.replica
	handled := func(id string, sent time.Time) bool {
		m := &relayMessage{Kind: relayRequest, ID: id, From: "other", Sent: sent.Unix(), Method: http.MethodGet, Sender: &relayedSender{Name: caller.Local}}
		data, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		r.served.mu.Lock()
		before := len(r.served.seen)
		r.served.mu.Unlock()
		r.receive(t.Context(), data)
		r.served.running.Wait()
		r.served.mu.Lock()
		defer r.served.mu.Unlock()
		return len(r.served.seen) > before
	}
	now := time.Now()
	for i, tt := range []struct {
		id   string
		sent time.Time
		want bool
	}{{"1", now, true}, {"1", now, false}, {"2", now.Add(-2 * relayAge), false}, {"3", now.Add(2 * relayAge), false}, {"4", now.Add(-relayAge / 2), true}} {
		if got := handled(tt.id, tt.sent); got != tt.want {
			t.Errorf("%d: handled: %t", i, got)
		}
	}
	r.receive(t.Context(), []byte("not a message"))
	if r.served.add("4", &servedRelay{}) {
		t.Error("a request is handled again")
	}
}

// Parts of an answer come in order, from one replica, and not faster than the client reads.
func TestRelayedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &relays{byID: map[string]*relay{}}
		part := func(id, from string, seq, size int) {
			all.deliver(&relayMessage{Kind: relayBody, ID: id, From: from, Seq: seq, body: make([]byte, size)})
		}
		a, b, c := all.add("a", "x"), all.add("b", "x"), all.add("c", "y")
		part("a", "x", 0, 1)
		part("a", "y", 1, 1)
		part("a", "x", 1, 2)
		for want := 1; want <= 2; want++ {
			if m, err := a.part(t.Context()); err != nil || len(m.body) != want {
				t.Fatal(m, err)
			}
		}
		part("a", "x", 3, 1)
		if _, err := a.part(t.Context()); !errors.Is(err, errLost) {
			t.Error(err)
		}
		part("b", "x", 0, maxUnread+1)
		if _, err := b.part(t.Context()); err == nil {
			t.Error("the answer is too large")
		}
		all.fail("x", errEnded)
		part("c", "y", 0, 1)
		if _, err := c.part(t.Context()); err != nil {
			t.Error(err)
		}
		go all.fail("", errEnded)
		if _, err := c.part(t.Context()); !errors.Is(err, errEnded) {
			t.Error(err)
		}
	})
}
