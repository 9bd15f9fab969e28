//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package workspace

import (
	"context"
	"os"
	"sync"
	"time"
)

// changeLock is the lock on changes to the workspace. This system has no folder
// locks between processes, so it works only within this process.
type changeLock struct{ mu sync.Mutex }

// acquire waits for the lock.
func (l *changeLock) acquire(ctx context.Context, _ *os.Root) (release func(), err error) {
	tick := time.Tick(time.Millisecond)
	for !l.mu.TryLock() {
		select {
		case <-tick:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return l.mu.Unlock, nil
}
