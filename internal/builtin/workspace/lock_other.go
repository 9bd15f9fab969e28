//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package workspace

import (
	"context"
	"os"
	"sync"
)

// changeLock is the one lock on changes to the workspace. Folders have no locks
// between processes here, so it holds within this process alone.
type changeLock struct{ mu sync.Mutex }

// acquire waits for the lock.
func (l *changeLock) acquire(context.Context, *os.Root) (release func(), err error) {
	l.mu.Lock()
	return l.mu.Unlock, nil
}
