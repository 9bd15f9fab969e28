package discover

import (
	"context"
	"runtime"
	"strings"
	"testing"
)

// A condition that takes more memory than it may is ended, whatever its time.
func TestMemoryOfConditionsIsLimited(t *testing.T) {
	ctx, stop := limitMemory(t.Context(), 1<<20)
	defer stop()
	held := make([]byte, 64<<20)
	<-ctx.Done()
	runtime.KeepAlive(held)
	if err := context.Cause(ctx); err == nil || !strings.Contains(err.Error(), "more than 1 MiB of memory") {
		t.Error(err)
	}
}
