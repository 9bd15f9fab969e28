package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	storeAway = 5 * time.Second // how long the store is away
	kindCalls = 3               // callers of each kind
)

// storeKinds are the kinds of calls: a revision and a server of [storeRun.settings]. Those to q ask,
// those to l are limited and those to t are tasks, so they need the store.
var storeKinds = []string{"2025-11-25 m", "2026-07-28 m", "2025-11-25 q", "2026-07-28 q", "2025-11-25 l", "2026-07-28 l", "2025-11-25 t", "2026-07-28 t"}

// underFault are the calls that are made during a fault.
type underFault struct {
	*storeRun
	answered [8]atomic.Int64 // of each of storeKinds

	mu     sync.Mutex
	failed []failedCall
	broken []span // times in which something was away
}

type span struct{ from, to time.Time }

type failedCall struct {
	span
	id    int64
	kind  string
	cause string
}

// Faults that happen while calls run cost no more than docs/replicas.md says: no call ever runs
// twice, and no session is lost.
func TestReplicasStoreFaults(t *testing.T) {
	r := newStoreRun(t)
	r.openSessions(t, 0)
	none := func(failedCall) bool { return false }
	any := func(failedCall) bool { return true }
	table := "| fault | calls | answered | not run | lost | run twice | sessions lost |\n|---|---|---|---|---|---|---|\n"
	for _, fault := range []struct {
		name string
		do   func(*underFault)
		may  func(failedCall) bool // whether a call that runs while something is away may fail
	}{
		{"none", func(*underFault) {}, none},
		{"SIGTERM of each process in turn", func(u *underFault) { u.end(t, syscall.SIGTERM) }, none},
		{"`kill -9` of each process in turn", func(u *underFault) { u.end(t, syscall.SIGKILL) }, any},
		{"the store is killed, and 5 seconds later started again, empty", func(u *underFault) { u.away(t, u.store.Kill, u.store.Again) }, failedCall.usesStore},
		{"the store stands still for 5 seconds", func(u *underFault) { u.away(t, u.store.Pause, u.store.Continue) }, failedCall.usesStore},
	} {
		u := &underFault{storeRun: r}
		first, again := r.next.Load(), r.askedAgain.Load()
		u.run(t, func() { fault.do(u) })
		idle, lost, twice, causes := 0, 0, 0, map[string]int{}
		for _, f := range u.failed {
			if r.ran(f.id) == 0 {
				idle++
			} else {
				lost++
			}
			causes[f.kind+": "+f.cause]++
			if !u.overlaps(f.span) || !fault.may(f) {
				t.Errorf("%s: call %d (%s) failed: %s", fault.name, f.id, f.kind, f.cause)
			}
		}
		for id := first + 1; id <= r.next.Load(); id++ {
			if r.ran(id) > 1 {
				twice++
			}
		}
		for cause, n := range causes {
			t.Logf("%s: %d × %s", fault.name, n, cause)
		}
		if again = r.askedAgain.Load() - again; again > 0 {
			t.Logf("%s: clients asked %d times again for the result of a task", fault.name, again)
			if !fault.may(failedCall{}) {
				t.Errorf("%s: it was not there at once", fault.name)
			}
		}
		sessions := u.lostSessions(t)
		if twice > 0 || sessions > 0 {
			t.Errorf("%s: %d calls ran twice, %d sessions are lost", fault.name, twice, sessions)
		}
		total := int(r.next.Load() - first)
		table += fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |\n", fault.name, total, total-len(u.failed), idle, lost, twice, sessions)
	}
	t.Log("\n" + table)
}

// usesStore reports whether the call could need the store: it asks, is limited, or is in a
// session that may be in another replica.
func (f failedCall) usesStore() bool { return f.kind != "2026-07-28 m" }

// run makes calls of all kinds before, during and after a fault.
func (u *underFault) run(t *testing.T, fault func()) {
	t.Helper()
	least := u.next.Load() + int64(u.calls/4)
	var over atomic.Bool
	var callers sync.WaitGroup
	for k, kind := range storeKinds {
		for range kindCalls {
			callers.Go(func() {
				for !over.Load() || u.next.Load() < least {
					id, begun := u.next.Add(1), time.Now()
					err := u.one(t, id, kind)
					if err == nil {
						u.answered[k].Add(1)
						continue
					}
					u.mu.Lock()
					u.failed = append(u.failed, failedCall{span{begun, time.Now()}, id, kind, cause(err)})
					u.mu.Unlock()
					<-time.After(50 * time.Millisecond)
				}
			})
		}
	}
	u.settle(t)
	fault()
	u.settle(t)
	over.Store(true)
	callers.Wait()
}

// one makes a call of a kind.
func (u *underFault) one(t *testing.T, id int64, kind string) error {
	revision, server, _ := strings.Cut(kind, " ")
	if server == "t" {
		return u.task(t.Context(), id, revision == "2026-07-28")
	}
	if revision == "2026-07-28" {
		return u.converse(t.Context(), id, server+"__slow", u.slow(id), "slept")
	}
	return u.callOlder(t.Context(), u.ports[0], u.sessions[id%int64(len(u.sessions))], server+"__slow", id)
}

// cause shortens an error so that those of one cause are equal.
func cause(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, mark := range []string{`"error":`, `"text":`} {
		if i := strings.Index(text, mark); i >= 0 {
			text = text[i:]
		}
	}
	return text[:min(len(text), 300)]
}

// settle waits until calls of every kind are answered.
func (u *underFault) settle(t *testing.T) {
	t.Helper()
	for k, kind := range storeKinds {
		enough := u.answered[k].Load() + 20
		if !waitFor(func() bool { return u.answered[k].Load() >= enough }, nil) {
			t.Errorf("calls of %s are not answered", kind)
		}
	}
}

// end sends a signal to each process in turn and starts it again.
func (u *underFault) end(t *testing.T, signal syscall.Signal) {
	for i, port := range u.ports[1:] {
		begun := time.Now()
		_ = u.running[i].Process.Signal(signal)
		_ = u.running[i].Wait()
		u.broken = append(u.broken, span{begun, time.Now()})
		u.running[i] = u.start(t, port)
		u.settle(t)
	}
}

// away does without the store for a while, which is over when all kinds of calls are answered
// again.
func (u *underFault) away(t *testing.T, stop, again func()) {
	begun := time.Now()
	stop()
	<-time.After(storeAway)
	again()
	back := time.Now()
	u.settle(t)
	t.Logf("all calls are answered %v after the store is back", time.Since(back).Round(10*time.Millisecond))
	u.broken = append(u.broken, span{begun, time.Now()})
}

// overlaps reports whether something was away during a call.
func (u *underFault) overlaps(call span) bool {
	return slices.ContainsFunc(u.broken, func(b span) bool { return call.from.Before(b.to) && call.to.After(b.from) })
}

// lostSessions returns how many sessions do not answer.
func (u *underFault) lostSessions(t *testing.T) int {
	var lost atomic.Int64
	u.each(func(i int) {
		if _, err := u.finish(t.Context(), u.ports[0], u.sessions[i], `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil {
			if lost.Add(1) == 1 {
				t.Errorf("session %d: %v", i, err)
			}
		}
	})
	return int(lost.Load())
}
