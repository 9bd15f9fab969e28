//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package workspace

import (
	"context"
	"os"
	"sync"
)

// changeLock is the lock on changes to the workspace. This system has no folder
// locks between processes, so it works only within this process.
type changeLock struct{ mu sync.Mutex }

// acquire waits for the lock.
func (l *changeLock) acquire(context.Context, *os.Root) (release func(), err error) {
	l.mu.Lock()
	return l.mu.Unlock, nil
}
