package lazy

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A value is made once, and only if it is needed.
func TestValue(t *testing.T) {
	var made atomic.Int32
	v := New(func() int32 { return made.Add(1) })
	if made.Load() != 0 {
		t.Fatal("New made the value")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := v.Get(); got != 1 {
				t.Errorf("Get() = %d, want 1", got)
			}
		})
	}
	wg.Wait()
}

// An expression is compiled once, and only if it is needed: an invalid one panics then.
func TestRegexp(t *testing.T) {
	r := NewRegexp(`^a+$`)
	if first := r.Get(); !first.MatchString("aa") || first != r.Get() {
		t.Error("Get does not return the one compiled expression")
	}
	invalid := NewRegexp(`(`)
	defer func() {
		if recover() == nil {
			t.Error("Get of an invalid expression does not panic")
		}
	}()
	invalid.Get()
}
