package transport

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// taken returns how many requests have a slot and how many wait for one.
func (s *Slots) taken() [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [2]int{s.working, s.waiting}
}

// Tokens take turns, and so do the sessions of a token, regardless of the order of
// arrival.
func TestSlotsAreShared(t *testing.T) {
	var q queue
	names := map[*ticket]string{}
	for _, from := range []string{"bad/1", "bad/1", "bad/1", "bad/1", "bad/2", "good/1", "good/2", "good/1"} {
		t := &ticket{}
		names[t] = from
		q.add(t, strings.Split(from, "/"))
	}
	var got []string
	for !q.empty() {
		got = append(got, names[q.next()])
	}
	want := []string{"bad/1", "good/1", "bad/2", "good/2", "bad/1", "good/1", "bad/1", "bad/1"}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if len(q.below) != 0 {
		t.Errorf("%d senders are left", len(q.below))
	}
}

// Requests that take long do not hold up the others. If many wait, fewer have a slot at a
// time.
func TestSlotsAreReleasedAfterSlotTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Slots{Processors: 1}
		begin := time.Now()
		var waited []time.Duration // in multiples of slotTime
		var mu sync.Mutex
		var requests sync.WaitGroup
		for range 3*slotsEach + 1 {
			requests.Go(func() {
				if _, err := s.Take(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				waited = append(waited, time.Since(begin)/slotTime)
			})
		}
		requests.Wait()
		time.Sleep(2 * slotTime)
		want := []time.Duration{0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5, 6}
		if !slices.Equal(waited, want) || s.taken() != [2]int{} {
			t.Errorf("slots after %v, want %v; taken and waiting: %d", waited, want, s.taken())
		}
	})
}

// A request that is canceled while it waits takes no slot. One that is canceled later
// keeps its slot, because its call continues for a while.
func TestSlotsOfCanceledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Slots{Processors: 1}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		done, err := s.Take(ctx, "a")
		for range slotsEach - 1 {
			_, _ = s.Take(t.Context(), "a")
		}
		go func() {
			if _, err := s.Take(ctx, "b"); !errors.Is(err, gone) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		if done(); err != nil || s.taken() != [2]int{slotsEach, 1} {
			t.Errorf("taken and waiting: %d, %v", s.taken(), err)
		}
		time.Sleep(2 * slotTime)
		if s.taken() != [2]int{} {
			t.Errorf("taken and waiting at the end: %d", s.taken())
		}
	})
}
