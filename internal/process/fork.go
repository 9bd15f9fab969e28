package process

import (
	"os"
	"runtime"
	"sync"
)

// forking is the thread that starts all children. On Linux the signal that kills
// a child with its parent (Pdeathsig) is sent when the thread that forked it
// ends, not the process, so the thread has to live as long as any child. All
// children share one thread because starting a thread takes longer than most
// uses of it.
var forking forkThread

type forkThread struct {
	mu    sync.Mutex
	users int
	work  chan func()
}

// enter keeps the thread alive until leave is called.
func (t *forkThread) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.users == 1 {
		t.work = make(chan func())
		go runLocked(t.work)
	}
}

func (t *forkThread) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		close(t.work)
	}
}

// do runs f on the thread, between enter and leave.
func (t *forkThread) do(f func() error) error {
	t.mu.Lock()
	work := t.work
	t.mu.Unlock()
	done := make(chan error, 1)
	work <- func() { done <- f() }
	return <-done
}

func runLocked(work <-chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f := range work {
		f()
	}
}

// Prepare does work in the background that the first start of a child would
// otherwise wait for.
func Prepare() {
	forking.enter()
	go func() {
		defer forking.leave()
		// Package os starts a process once to learn what the kernel supports.
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Release()
		}
	}()
}
