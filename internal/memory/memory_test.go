package memory

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// Work that exceeds its memory limit is canceled.
func TestLimit(t *testing.T) {
	ctx, stop := Limit(t.Context(), 1<<20)
	defer stop()
	held := make([]byte, 64<<20)
	<-ctx.Done()
	runtime.KeepAlive(held)
	if err := context.Cause(ctx); err == nil || !strings.Contains(err.Error(), "too much memory: more than 1 MiB") {
		t.Error(err)
	}
}

// Await does not wait for work that ignores its context.
func TestAwait(t *testing.T) {
	if v, err := Await(t.Context(), func() int { return 7 }); v != 7 || err != nil {
		t.Error(v, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause, release := errors.New("enough"), make(chan struct{})
	_, err := Await(ctx, func() int { cancel(cause); <-release; return 7 })
	close(release)
	if !errors.Is(err, cause) {
		t.Error(err)
	}
}
