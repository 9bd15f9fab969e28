//go:build unix

package store

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/toolreg/toolreg/internal/store/storetest"
)

const secret = "0123456789abcdef0123456789abcdef"

func open(t *testing.T, address, secret string) *Store {
	t.Helper()
	s, err := Open(address, secret)
	if err != nil {
		t.Fatal(err)
	}
	s.Limit = time.Minute // a busy machine may take longer than a use of the store may
	t.Cleanup(s.Close)
	return s
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"redis://h": "h:6379", "rediss://u:p@h:1/2?prefix=a.b": "h:1", "redis://:p@[::1]": "[::1]:6379", "redis://h/": "h:6379",
		"http://h": "", "redis://": "", "redis://h/x": "", "redis://h/-1": "", "redis://h:0": "", "redis://h:65536": "", "redis://h?db=1": "", "redis://h?prefix=": "", "redis://h?prefix=a:b": "",
		"redis://h?prefix=a&prefix=b": "", "redis://:s%zz@h": "", "redis://:hunter2#@h": "", "unix:///x": "",
	} {
		s, err := Open(address, secret)
		switch {
		case want == "" && err == nil:
			t.Errorf("%s is accepted", address)
		case want == "" && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v", address, err)
		case want != "" && err != nil:
			t.Errorf("%s: %v", address, err)
		case want != "" && s.server.address != want:
			t.Errorf("%s: %s", address, s.server.address)
		}
	}
	s, _ := Open("rediss://u:p@h:1/2?prefix=a.b", secret)
	if s.prefix != "a.b" || s.server.database != 2 || s.server.user != "u" || s.server.password != "p" || s.server.tls.ServerName != "h" {
		t.Errorf("%+v", s.server)
	}
}

// The error of an address that names another kind of server says what may be wrong with it.
func TestWrongServers(t *testing.T) {
	plain, page, secure := storetest.Start(t), httptest.NewServer(nil), httptest.NewTLSServer(nil)
	defer page.Close()
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for address, want := range map[string]string{
		"rediss://" + plain.Address:                  "it may not use TLS: then the address begins with redis://",
		"rediss://" + page.Listener.Addr().String():  "it may not use TLS: then the address begins with redis://",
		"redis://" + secure.Listener.Addr().String(): "it may use TLS: then the address begins with rediss://",
		"redis://" + page.Listener.Addr().String():   "it does not answer as Redis or Valkey does",
	} {
		s := open(t, address, secret)
		s.Limit = Timeout // which some of them let pass
		err := errors.Unwrap(s.Put(t.Context(), "k", "a", nil, time.Minute))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Values are sealed for their names, and only replicas with the same key and prefix see them.
// rediss:// is TLS, and the certificate of the server is checked.
func TestTLS(t *testing.T) {
	to := storetest.Start(t)
	h := httptest.NewTLSServer(nil) // for its certificate
	defer h.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", ca)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: h.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				back, err := net.Dial("tcp", to.Address)
				if err != nil {
					return
				}
				defer back.Close()
				served.Go(func() { _, _ = io.Copy(back, conn); back.Close() })
				_, _ = io.Copy(conn, back)
			})
		}
	})
	defer served.Wait()
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for host, works := range map[string]bool{"127.0.0.1": true, "localhost": false} { // which the certificate does not name
		s, err := Open("rediss://"+net.JoinHostPort(host, port), secret)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Put(t.Context(), "kind", "id", []byte("data"), time.Minute)
		s.Close()
		if (err == nil) != works {
			t.Errorf("%s: %v", host, err)
		}
	}
	if keys := to.Do("KEYS", "*"); strings.Count(keys, "\n") != 0 || keys == "" {
		t.Errorf("keys: %q", keys)
	}
}

func TestValuesAreSealed(t *testing.T) {
	server := storetest.Start(t)
	a, ctx := open(t, server.URL(), secret), t.Context()
	if err := a.Put(ctx, "k", "hunter-id", []byte("hunter2"), time.Minute); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*Store{"key": open(t, server.URL(), secret+"x"), "prefix": open(t, server.URL()+"?prefix=x", secret), "database": open(t, server.URL()+"/1", secret)} {
		if v, err := other.Get(ctx, "k", "hunter-id"); err != nil || v.Exists() {
			t.Errorf("another %s: %+v, %v", name, v, err)
		}
	}
	name := server.Do("KEYS", "*")
	if raw := server.Do("GET", name); strings.Contains(name+raw, "hunter") || raw == "" {
		t.Errorf("%q: %q", name, raw)
	}
	if ttl := server.Do("PTTL", name); ttl == "-1" {
		t.Error("it has no end")
	}
	if err := a.Put(ctx, "k", "b", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	server.Do("COPY", name, a.name("k", "b"), "REPLACE")
	if v, err := a.Get(ctx, "k", "b"); err != nil || v.Exists() {
		t.Errorf("a value of another name: %+v, %v", v, err)
	}
	if v, err := a.Get(ctx, "k", "hunter-id"); err != nil || string(v.Data) != "hunter2" {
		t.Errorf("%+v, %v", v, err)
	}
}

// Each value of a kind is found and can be removed, however many there are; nothing else is.
func TestEach(t *testing.T) {
	to, ctx := storetest.Start(t), t.Context()
	s, want := open(t, to.URL(), secret), map[string]bool{}
	put := func(s *Store, kind, id string) {
		if err := s.Put(ctx, kind, id, []byte(id), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2*scanned + 1 {
		want[strconv.Itoa(i)] = true
		put(s, "k", strconv.Itoa(i))
	}
	put(s, "k2", "other kind")
	put(open(t, to.URL(), "another secret of a deployment.."), "k", "other key")
	put(open(t, to.URL()+"?prefix=p", secret), "k", "other prefix")
	each := func() (got []string) {
		err := s.Each(ctx, "k", func(data []byte, remove func(context.Context) error) error {
			got = append(got, string(data))
			return remove(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := each()
	for _, id := range got {
		delete(want, id)
	}
	if len(got) != 2*scanned+1 || len(want) != 0 {
		t.Errorf("%d values, without %v", len(got), want)
	}
	if got := each(); len(got) != 0 {
		t.Errorf("not removed: %v", got)
	}
	stop := errors.New("stop")
	put(s, "k", "1")
	if err := s.Each(ctx, "k", func([]byte, func(context.Context) error) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestSwap(t *testing.T) {
	server := storetest.Start(t)
	s, ctx := open(t, server.URL(), secret), t.Context()
	first, ok, err := s.Swap(ctx, "k", "a", Value{}, []byte("1"), time.Minute)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if v, ok, err := s.Swap(ctx, "k", "a", Value{}, []byte("2"), time.Minute); ok || err != nil || string(v.Data) != "1" {
		t.Errorf("%q %t %v", v.Data, ok, err)
	}
	if v, ok, err := s.Swap(ctx, "k", "a", first, []byte("3"), time.Minute); !ok || err != nil || string(v.Data) != "3" {
		t.Errorf("%q %t %v", v.Data, ok, err)
	}
	if _, ok, _ := s.Swap(ctx, "k", "a", first, []byte("4"), time.Minute); ok {
		t.Error("an old value was replaced")
	}
	server.Do("SET", s.name("k", "b"), "foreign")
	v, err := s.Get(ctx, "k", "b")
	if err != nil || v.Exists() {
		t.Errorf("%+v, %v", v, err)
	}
	if _, ok, err := s.Swap(ctx, "k", "b", v, nil, time.Minute); !ok || err != nil {
		t.Error("a foreign value cannot be replaced", err)
	}
	if err := s.Delete(ctx, "k", "a"); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Get(ctx, "k", "a"); err != nil || v.Exists() {
		t.Errorf("%+v, %v", v, err)
	}
}

// Of many that take a value, one gets it.
func TestTakeIsForOneConcurrent(t *testing.T) {
	server := storetest.Start(t)
	ctx := t.Context()
	stores := []*Store{open(t, server.URL(), secret), open(t, server.URL(), secret)}
	if err := stores[0].Offer(ctx, "q", "1", []byte("x"), time.Minute); err != nil {
		t.Fatal(err)
	}
	if v, err := stores[1].Look(ctx, "q", "1"); err != nil || string(v.Data) != "x" {
		t.Fatal(v, err)
	}
	var taken atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			v, err := stores[i%2].Take(ctx, "q", "1")
			if err != nil {
				t.Error(err)
			}
			if v.Exists() {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("%d took it", taken.Load())
	}
}

// A replica of the server that takes its place may not have seen what was taken.
func TestTakeAfterFailover(t *testing.T) {
	first := storetest.Start(t)
	_, port, _ := strings.Cut(first.Address, ":")
	second := storetest.Start(t, "--replicaof", "127.0.0.1 "+port)
	proxy := storetest.NewProxy(t, first.Address)
	s, ctx := open(t, proxy.URL(), secret), t.Context()
	for _, id := range []string{"1", "2"} {
		if err := s.Offer(ctx, "q", id, []byte("x"), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(ctx, "k", "1", []byte("y"), time.Minute); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return second.Do("DBSIZE") == "3" })
	first.Pause()
	second.Do("REPLICAOF", "NO", "ONE")
	proxy.To(second.Address)
	defer first.Continue()
	eventually(t, func() bool { v, err := s.Get(ctx, "k", "1"); return err == nil && string(v.Data) == "y" })
	if v, err := s.Look(ctx, "q", "1"); err != nil || v.Exists() {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := s.Take(ctx, "q", "2"); err != nil || v.Exists() {
		t.Errorf("%+v %v", v, err)
	}
}

func TestCount(t *testing.T) {
	server := storetest.Start(t)
	s, ctx := open(t, server.URL(), secret), t.Context()
	two := Span{"two", 2, time.Hour}
	for i, want := range []int{-1, -1, 1} {
		spans := []Span{{"many", 100, time.Hour}, two}
		full, left, err := s.Count(ctx, spans)
		if err != nil || full != want || full >= 0 && (left > time.Hour || left < time.Minute) {
			t.Errorf("%d: %d %s %v", i, full, left, err)
		}
	}
	// What was refused is not counted.
	if full, _, err := s.Count(ctx, []Span{{"many", 3, time.Hour}}); full != -1 || err != nil {
		t.Error(full, err)
	}
	if _, _, err := s.Count(ctx, []Span{{"short", 1, 20 * time.Millisecond}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		full, _, err := s.Count(ctx, []Span{{"short", 1, time.Hour}})
		return full == -1 && err == nil
	})
}

// A method ends soon when the server is away, full or silent, and the Store tells once of each.
func TestAway(t *testing.T) {
	server := storetest.Start(t)
	proxy := storetest.NewProxy(t, server.Address)
	s, ctx := open(t, proxy.URL(), secret), t.Context()
	s.Limit = Timeout
	changes := make(chan error, 100)
	s.Changed = func(err error) { changes <- err }
	put := func() error { return s.Put(ctx, "k", "a", []byte("1"), time.Minute) }
	away := func(what string) {
		t.Helper()
		start := time.Now()
		_, isAway := errors.AsType[*UnavailableError](put())
		if took := time.Since(start); !isAway || took >= 2*Timeout {
			t.Errorf("%s: %s", what, took)
		}
		if err := <-changes; err == nil {
			t.Errorf("%s: back", what)
		}
	}
	back := func(what string) {
		t.Helper()
		if err := s.Wait(ctx); err != nil {
			t.Fatal(what, err)
		}
		if err := <-changes; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	away("killed")
	server.Again()
	back("killed")
	proxy.Swallow(true)
	away("silent")
	for soon := false; !soon; { // a busy machine may let the pause pass
		s.mu.Lock()
		failed := s.failed
		s.mu.Unlock()
		start := time.Now()
		soon = start.Sub(failed) < pause/2
		if _, err := s.Get(ctx, "k", "a"); err == nil || soon && time.Since(start) > Timeout/2 {
			t.Errorf("the next use takes %s: %v", time.Since(start), err)
		}
	}
	proxy.Swallow(false)
	proxy.Break()
	back("silent")
	server.Do("CONFIG", "SET", "maxmemory", "1")
	away("full")
	if _, err := s.Get(ctx, "k", "a"); err != nil {
		t.Errorf("reading from a full store: %v", err)
	}
	if _, isAway := errors.AsType[*UnavailableError](put()); !isAway || len(changes) > 0 {
		t.Error("a full store is said to be back")
	}
	server.Do("CONFIG", "SET", "maxmemory", "0")
	back("full")
	if len(changes) > 0 {
		t.Error("told twice")
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Put(canceled, "k", "a", nil, time.Minute); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// When the server was started again, one use fails, however many connections were in use.
func TestConnectionsBreak(t *testing.T) {
	proxy := storetest.NewProxy(t, storetest.Start(t).Address)
	s, ctx := open(t, proxy.URL(), secret), t.Context()
	var used []redis.Conn
	for range 3 {
		conn := s.pool.Get()
		if _, err := conn.Do("PING"); err != nil {
			t.Fatal(err)
		}
		used = append(used, conn)
	}
	for _, conn := range used {
		_ = conn.Close()
	}
	proxy.Break()
	put := func() error { return s.Put(ctx, "k", "a", []byte("1"), time.Minute) }
	if _, isAway := errors.AsType[*UnavailableError](put()); !isAway {
		t.Error("it does not fail")
	}
	if err := put(); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}
