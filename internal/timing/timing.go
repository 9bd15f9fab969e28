// Package timing limits how long something takes, and waits no longer than a context lasts.
package timing

import (
	"context"
	"time"
)

// Limit is [context.WithTimeoutCause] for a limit that may be 0, which means none. A nil cause is
// [context.DeadlineExceeded].
func Limit(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, cause)
}

// Until returns a context that also ends, with a cause, when a channel is closed. A nil channel is
// never closed. The caller must call stop.
func Until(ctx context.Context, closed <-chan struct{}, cause error) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-closed:
			cancel(cause)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Pause waits for d. If ctx is done before that, it returns the cause.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// UntilDone returns what read returns, or the cause of ctx if that is done first: stdin
// or a named pipe may never provide data. An abandoned read ends with the process.
func UntilDone[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	got := make(chan outcome, 1)
	go func() {
		value, err := read()
		got <- outcome{value, err}
	}()
	select {
	case o := <-got:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
