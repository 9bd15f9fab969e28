//go:build unix

package store

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/store/storetest"
)

// Whoever can write to the server cannot put an earlier value back, such as an approval that was
// revoked, or an answer that was taken, in the place of one that this process has seen.
func TestEarlierValuesAreRefused(t *testing.T) {
	server := storetest.Start(t)
	a, b := open(t, server.URL(), secret), open(t, server.URL(), secret)
	raw := func(s *Store, kind string) string { return server.Do("GET", s.name(kind, "x")) }
	putBack := func(kind, sealed string) { server.Do("SET", a.name(kind, "x"), sealed) }
	get := func(s *Store, kind string) string {
		t.Helper()
		v, err := s.Get(t.Context(), kind, "x")
		if err != nil {
			t.Fatal(err)
		}
		return string(v.Data)
	}

	first, _, _ := a.Swap(t.Context(), "approvals", "x", Value{}, []byte("allowed"), time.Minute)
	stolen := raw(a, "approvals")
	if get(b, "approvals") != "allowed" {
		t.Fatal("another process does not read it")
	}
	if _, swapped, err := a.Swap(t.Context(), "approvals", "x", first, []byte("revoked"), time.Minute); !swapped {
		t.Fatal(err)
	}
	if got := get(b, "approvals"); got != "revoked" {
		t.Fatalf("got %q", got)
	}
	putBack("approvals", stolen)
	if got := get(a, "approvals") + get(b, "approvals"); got != "" {
		t.Errorf("what was put back is read: %q", got)
	}
	v, err := a.Get(t.Context(), "approvals", "x")
	if _, swapped, _ := a.Swap(t.Context(), "approvals", "x", v, []byte("new"), time.Minute); !swapped {
		t.Errorf("what was put back cannot be replaced: %v", err)
	}
	if got := get(a, "approvals") + get(b, "approvals"); got != "newnew" {
		t.Errorf("after that: %q", got)
	}

	if err := a.Put(t.Context(), "logins", "x", []byte("one"), time.Minute); err != nil {
		t.Fatal(err)
	}
	stolen = raw(a, "logins")
	if err := a.Delete(t.Context(), "logins", "x"); err != nil {
		t.Fatal(err)
	}
	putBack("logins", stolen)
	if got := get(a, "logins"); got != "" {
		t.Errorf("what was deleted is read: %q", got)
	}

	if err := a.Offer(t.Context(), "answers", "x", []byte("yes"), time.Minute); err != nil {
		t.Fatal(err)
	}
	stolen = raw(a, "answers")
	if v, err := b.Take(t.Context(), "answers", "x"); string(v.Data) != "yes" {
		t.Fatal(v, err)
	}
	putBack("answers", stolen)
	if v, err := b.Take(t.Context(), "answers", "x"); err != nil || v.Exists() {
		t.Errorf("an answer is taken twice: %q, %v", v.Data, err)
	}
}

// A value that is replaced while it is read is not taken for one that somebody has put back.
func TestReplacedWhileRead(t *testing.T) {
	s := open(t, storetest.Start(t).URL(), secret)
	put := func(i int) {
		if err := s.Put(t.Context(), "logins", "x", []byte(strconv.Itoa(i)), time.Minute); err != nil {
			t.Error(err)
		}
	}
	put(0)
	over := make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if v, err := s.Get(t.Context(), "logins", "x"); err != nil || !v.Exists() {
					t.Errorf("%q, %v", v.Data, err)
					return
				}
			}
		})
	}
	for i := range 1000 {
		put(i)
	}
	close(over)
	readers.Wait()
}

// A value without a counter, of an earlier version, is read until there is one with a counter.
func TestValuesWithoutCounter(t *testing.T) {
	server := storetest.Start(t)
	s := open(t, server.URL(), secret)
	name := s.name("approvals", "x")
	old := s.sealer.seal(name, []byte("of an earlier version"))
	server.Do("SET", name, old)
	v, err := s.Get(t.Context(), "approvals", "x")
	if string(v.Data) != "of an earlier version" {
		t.Fatal(v, err)
	}
	if _, swapped, err := s.Swap(t.Context(), "approvals", "x", v, []byte("now"), time.Minute); !swapped {
		t.Fatal(err)
	}
	server.Do("SET", name, old)
	if v, err := s.Get(t.Context(), "approvals", "x"); err != nil || v.Exists() {
		t.Errorf("it is read again: %q, %v", v.Data, err)
	}
}

// Counters grow even if the clock goes back, and what is used stays known among many names.
func TestCounters(t *testing.T) {
	var f freshness
	now := time.Unix(100_000, 0)
	for range 2 {
		f.accept("a", f.next("a", now))
		now = now.Add(-time.Hour)
	}
	if f.highest("a") != uint64(time.Unix(100_000, 0).UnixNano())+1 {
		t.Errorf("%d", f.highest("a"))
	}
	for i := range 4 * maxSeen {
		f.accept(strconv.Itoa(i), 1)
		if i%1000 == 0 && !f.accept("a", f.highest("a")) {
			t.Fatal("it is not accepted any more")
		}
	}
	if f.accept("a", 1) || len(f.seen)+len(f.old) > 2*maxSeen {
		t.Errorf("%d names", len(f.seen)+len(f.old))
	}
}
