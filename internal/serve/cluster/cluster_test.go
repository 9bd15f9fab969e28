//go:build unix

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

const secret = "0123456789abcdef0123456789abcdef"

// replica is a Member that counts what it handles.
type replica struct {
	*Member
	handled atomic.Int64
	renewed atomic.Int64
	leave   func()
}

// outsider returns a replica that has not joined, and waits that long for another one to answer.
func outsider(t *testing.T, address, secret string, limit time.Duration) *replica {
	t.Helper()
	shared, err := store.Open(address, secret)
	if err != nil {
		t.Fatal(err)
	}
	shared.Limit = limit
	t.Cleanup(shared.Close)
	return &replica{Member: New(shared)}
}

// join starts a replica. handle may be nil.
func join(t *testing.T, address, secret string, handle func(http.ResponseWriter, *http.Request) bool) *replica {
	t.Helper()
	r := outsider(t, address, secret, time.Minute) // a busy machine may take longer than a use of the store may
	leave, err := r.Join(context.WithoutCancel(t.Context()), Options{Log: slog.New(slog.DiscardHandler), Renew: func(context.Context) { r.renewed.Add(1) },
		Handle: func(w http.ResponseWriter, req *http.Request) bool {
			if handle != nil && !handle(w, req) {
				return false
			}
			r.handled.Add(1)
			_, _ = fmt.Fprintf(w, "%s %s", req.Method, req.URL)
			return true
		}})
	if err != nil {
		t.Fatal(err)
	}
	r.leave = sync.OnceFunc(leave)
	t.Cleanup(r.leave)
	return r
}

func (r *replica) find(t *testing.T, other *replica) Peer {
	t.Helper()
	p, err := r.Find(t.Context(), other.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *replica) post(ctx context.Context, to Peer) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/x?y=1", strings.NewReader("body"))
	if err != nil {
		return "", err
	}
	answer, err := r.Send(req, to)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return string(data), err
}

// Only a process with the same key reaches a replica, and a replica sends nothing to another process,
// even if the store says that one is there.
func TestOnlyReplicasReachEachOther(t *testing.T) {
	redis := storetest.Start(t)
	a, b := join(t, redis.URL(), secret, nil), join(t, redis.URL(), secret, nil)
	other := join(t, redis.URL(), "another secret of a deployment..", nil)
	to := a.find(t, b)
	if to.ID != b.ID || !strings.HasPrefix(to.Address, "127.0.0.1:") {
		t.Errorf("%+v", to)
	}
	if got, err := a.post(t.Context(), to); got != "POST /x?y=1" {
		t.Errorf("%q, %v", got, err)
	}
	if p := other.find(t, b); p != (Peer{}) {
		t.Errorf("another key finds %+v", p)
	}
	if _, err := other.post(t.Context(), to); !errors.Is(err, ErrNotThere) && err == nil {
		t.Error("another key is served")
	}
	for name, config := range map[string]*tls.Config{"no certificate": {InsecureSkipVerify: true, NextProtos: []string{"h2"}}, "another protocol": credentialsFor(b, "http/1.1")} {
		conn, err := tls.Dial("tcp", to.Address, config)
		if err == nil { // the server learns of a missing certificate after the client is done
			_, err = io.WriteString(conn, "POST /x HTTP/1.1\r\nHost: replica\r\nContent-Length: 0\r\n"+headerTo+": "+b.ID+"\r\n\r\n")
			answer, _ := io.ReadAll(conn)
			if strings.Contains(string(answer), "200") {
				t.Errorf("%s: %v %q", name, err, answer)
			}
			_ = conn.Close()
		}
	}
	if resp, err := http.Get("http://" + to.Address + "/x"); err == nil && resp.StatusCode == http.StatusOK {
		t.Error("a request without TLS is served")
	}
	if n := b.handled.Load(); n != 1 {
		t.Errorf("%d requests were handled", n)
	}

	got := make(chan string, 10)
	trap := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	trap.EnableHTTP2 = true
	trap.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	trap.StartTLS()
	defer trap.Close()
	impatient := outsider(t, redis.URL(), secret, store.Timeout)
	for _, address := range []string{trap.Listener.Addr().String(), redis.Address, other.find(t, other).Address} {
		if _, err := impatient.post(t.Context(), Peer{"x", address}); !errors.Is(err, ErrNotThere) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if len(got) > 0 || other.handled.Load() > 0 {
		t.Error("another process got a request")
	}
}

func credentialsFor(r *replica, protocol string) *tls.Config {
	config := credentials(r.store.Derive(linkPurpose))
	config.NextProtos = []string{protocol}
	return config
}

func TestSendErrors(t *testing.T) {
	redis := storetest.Start(t)
	begun, again := make(chan struct{}), make(chan struct{})
	a := join(t, redis.URL(), secret, nil)
	b := join(t, redis.URL(), secret, func(w http.ResponseWriter, r *http.Request) bool {
		switch data, _ := io.ReadAll(r.Body); {
		case r.Method == http.MethodDelete:
			return false
		case string(data) != "body" || r.Header.Get(headerTo) != "":
			t.Errorf("%q %v", data, r.Header)
		}
		close(begun)
		<-r.Context().Done()
		close(again)
		panic(http.ErrAbortHandler)
	})
	to := a.find(t, b)
	if _, err := a.post(t.Context(), Peer{"another", to.Address}); !errors.Is(err, ErrRefused) {
		t.Errorf("a replica that has got the address of another: %v", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Send(req, to); !errors.Is(err, ErrRefused) {
		t.Errorf("what is not there: %v", err)
	}
	over := make(chan error)
	go func() { _, err := a.post(t.Context(), to); over <- err }()
	<-begun
	b.leave()
	if err := <-over; err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrNotThere) {
		t.Errorf("a request that was not finished: %v", err)
	}
	<-again
	if _, err := a.post(t.Context(), to); !errors.Is(err, ErrNotThere) {
		t.Errorf("a replica that has left: %v", err)
	}
	if p := a.find(t, b); p != (Peer{}) {
		t.Errorf("it is still found: %+v", p)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	impatient := outsider(t, redis.URL(), secret, store.Timeout)
	if _, err := impatient.post(t.Context(), Peer{"x", l.Addr().String()}); !errors.Is(err, ErrNotThere) {
		t.Errorf("a process that does not answer: %v", err)
	}
}

// A request to a replica that leaves is handled, and answered, or can go elsewhere.
func TestRequestsWhileReplicaLeavesConcurrent(t *testing.T) {
	redis := storetest.Start(t)
	a := join(t, redis.URL(), secret, nil)
	for range 5 {
		b := join(t, redis.URL(), secret, nil)
		to := a.find(t, b)
		var answered, broken atomic.Int64
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for {
					switch _, err := a.post(t.Context(), to); {
					case errors.Is(err, ErrNotThere), errors.Is(err, ErrRefused):
						return
					case err != nil:
						broken.Add(1)
					default:
						answered.Add(1)
					}
				}
			})
		}
		for answered.Load() < 50 {
			if _, err := a.post(t.Context(), to); err == nil {
				answered.Add(1)
			}
		}
		b.leave()
		senders.Wait()
		if handled := b.handled.Load(); handled < answered.Load() || handled > answered.Load()+broken.Load() || broken.Load() > 8 {
			t.Errorf("%d requests were handled, %d answered, %d broken off", handled, answered.Load(), broken.Load())
		}
	}
}

// A replica is found again, and writes everything again, when the store comes back empty.
func TestStoreComesBackEmpty(t *testing.T) {
	redis := storetest.Start(t)
	a, b := join(t, redis.URL(), secret, nil), join(t, redis.URL(), secret, nil)
	await(t, func() bool { return b.renewed.Load() > 0 })
	b.emptied.Store(0)
	if b.Settling(t.Context()) {
		t.Error("it lacks nothing")
	}
	before := b.renewed.Load()
	redis.Do("FLUSHALL")
	if !b.Settling(t.Context()) {
		t.Error("it has lost everything")
	}
	await(t, func() bool { return a.find(t, b).ID == b.ID && b.renewed.Load() > before })
	b.leave()
	redis.Do("FLUSHALL")
	if b.Settling(t.Context()) {
		t.Error("it has left")
	}
}

// A thing belongs to the replica that claims it first, until that one gives it up or does not live.
func TestClaims(t *testing.T) {
	redis := storetest.Start(t)
	link := storetest.NewProxy(t, redis.Address)
	a, b := join(t, link.URL(), secret, nil), join(t, redis.URL(), secret, nil)
	atA, atB := a.Claims("k", time.Minute), b.Claims("k", time.Minute)
	if got := atA.Claim(t.Context(), "x"); got != (Peer{}) || !atA.Has("x") {
		t.Errorf("the first: %+v", got)
	}
	if got := atB.Claim(t.Context(), "x"); got != b.find(t, a) || atB.Has("x") {
		t.Errorf("the second: %+v", got)
	}
	redis.Do("FLUSHALL")
	atA.Renew(t.Context())
	await(t, func() bool { return b.find(t, a).ID == a.ID })
	if got := atB.Claim(t.Context(), "x"); got.ID != a.ID {
		t.Errorf("after the store was empty: %+v", got)
	}
	atA.GiveUp(t.Context())
	if got := atB.Claim(t.Context(), "x"); got != (Peer{}) || !atB.Has("x") || atA.Has("x") {
		t.Errorf("what was given up: %+v", got)
	}
	if got := atA.Claim(t.Context(), "y"); got != (Peer{}) {
		t.Errorf("another: %+v", got)
	}
	link.Swallow(true)
	await(t, func() bool { return b.find(t, a) == (Peer{}) })
	if got := atB.Claim(t.Context(), "y"); got != (Peer{}) || !atB.Has("y") {
		t.Errorf("what one had that does not live: %+v", got)
	}
	link.Swallow(false)
	link.Break()
	await(t, func() bool { atA.Renew(t.Context()); return !atA.Has("y") })
}

func await(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}
