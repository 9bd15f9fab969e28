// Package memory ends work that takes too much of it.
package memory

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// interval is the time between two looks at the heap: work may go beyond its limit
// for that long.
const interval = 2 * time.Millisecond

// ErrLimit is the cause of a context that Limit ended.
var ErrLimit = errors.New("it took too much memory")

// Limit ends a context once the heap has grown by more than limit bytes, garbage
// included. The function returned ends the watching and must be called. Work that
// ends within the interval costs no more than a timer.
func Limit(ctx context.Context, limit uint64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	start := heap()
	var look func()
	look = func() {
		if heap() > start+limit {
			cancel(fmt.Errorf("%w: more than %d MiB", ErrLimit, limit>>20))
		}
		if ctx.Err() == nil {
			time.AfterFunc(interval, look)
		}
	}
	first := time.AfterFunc(interval, look)
	return ctx, func() { cancel(nil); first.Stop() }
}

// Await returns what work returns, or the cause of the context once that has ended.
// Work that does not look at its context, such as one big allocation, then goes on
// by itself: a program that ends soon takes it along.
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

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
