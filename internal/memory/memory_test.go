package memory

import (
	"context"
	"runtime"
	"strings"
	"testing"
)

// Work that takes more memory than it may is ended.
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
