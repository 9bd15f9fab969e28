//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package workspace

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/text"
)

// lockWait is how long a change waits for others to finish.
const lockWait = 10 * time.Second

var errLocked = errors.New("another program is changing files in the workspace; try again")

// changeLock is the lock on changes to the workspace: a lock on its folder,
// which leaves no file behind and is released when the process that holds it
// exits. If the file system does not support such locks, changes proceed
// without one.
type changeLock struct{}

// acquire waits for the lock, at most lockWait.
func (changeLock) acquire(ctx context.Context, root *os.Root) (release func(), err error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, text.Cause(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, errLocked)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return func() { folder.Close() }, nil // closing releases the lock
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			folder.Close()
			return nil, context.Cause(ctx)
		}
	}
}
