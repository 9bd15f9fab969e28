// Package memory stops work that uses too much memory, in a process that does
// nothing else.
package memory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// interval is the time between two checks. Within it, work may exceed its limit.
const interval = 2 * time.Millisecond

// ErrLimit is the cause of a context that Limit canceled.
var ErrLimit = errors.New("it took too much memory")

// Limit cancels a context once the heap and the stacks of the whole process have
// grown by more than limit bytes, including garbage. The returned function stops the
// checks and must be called. If work ends within the first interval, the only cost is
// a timer.
func Limit(ctx context.Context, limit uint64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	start := used()
	var look func()
	look = func() {
		if used() > start+limit {
			cancel(fmt.Errorf("%w: more than %d MiB", ErrLimit, limit>>20))
		}
		if ctx.Err() == nil {
			time.AfterFunc(interval, look)
		}
	}
	first := time.AfterFunc(interval, look)
	return ctx, func() { cancel(nil); first.Stop() }
}

// Await returns the result of work, or the cause of the context if that ends
// first. Work that does not check its context, such as one large allocation,
// then continues in the background until the program ends.
func Await[T any](ctx context.Context, work func() T) (T, error) {
	done := make(chan T, 1)
	go func() { done <- work() }()
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// used returns the bytes of the heap and the stacks. It stops the program for a
// moment; package runtime/metrics would not, but takes 0.1 ms at the start of every
// run.
func used() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
