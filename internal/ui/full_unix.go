//go:build unix

package ui

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// HasFull reports whether [TTY.Full] works on this system.
const HasFull = true

// makeRaw makes a terminal deliver each key as it is pressed, without echo, until
// cooked is called.
func makeRaw(f *os.File) (cooked func(), err error) {
	cooked = restore(f)
	return cooked, control(f, func(fd int) error { _, err := term.MakeRaw(fd); return err })
}

// watchSize returns a channel that receives a value when the size of the
// terminal has changed, until forget is called.
func watchSize() (changed chan os.Signal, forget func()) { return watchSignal(unix.SIGWINCH) }

// orphanWait is how long to wait for the stop. A process group without a shell as
// parent (an orphaned one) is not stopped at all.
const orphanWait = time.Second

// stopSelf stops the process group, as Ctrl-Z does, and returns when it
// continues.
func stopSelf(ctx context.Context) {
	continued, forget := watchContinued()
	defer forget()
	if unix.Kill(0, unix.SIGTSTP) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(orphanWait):
	case <-ctx.Done():
	}
}

// keyReader reads keys. It waits with select(2), because the runtime's poller
// does not support /dev/tty on every system, and a read that is abandoned would
// take the next key.
type keyReader struct {
	keys      chan Key
	tty       *os.File
	quit      chan struct{}
	wake, end *os.File // a pipe: closing end wakes up select
	done      chan struct{}
}

func newKeyReader(tty *os.File) (*keyReader, error) {
	wake, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r := &keyReader{
		keys: make(chan Key, 64),
		tty:  tty,
		quit: make(chan struct{}),
		wake: wake,
		end:  end,
		done: make(chan struct{}),
	}
	go r.run()
	return r, nil
}

// close stops reading; keys that were not received are lost.
func (r *keyReader) close() {
	close(r.quit)
	_ = r.end.Close() // cannot lose data: nothing was written
	<-r.done
	_ = r.wake.Close()
}

// escapeWait is how long the rest of an escape sequence may take after ESC.
const escapeWait = 50 * time.Millisecond

func (r *keyReader) run() {
	defer close(r.done)
	defer close(r.keys)
	var typed []byte
	for {
		limit := escapeWait
		if len(typed) == 0 || isPaste(typed) {
			limit = 0
		}
		err := r.more(&typed, limit)
		final := errors.Is(err, os.ErrDeadlineExceeded)
		for len(typed) > 0 {
			key, n := decodeKey(typed, final)
			if n == 0 {
				break
			}
			if typed = typed[n:]; !r.send(key) {
				return
			}
		}
		if err != nil && !final {
			return
		}
	}
}

func (r *keyReader) send(key Key) bool {
	select {
	case r.keys <- key:
		return true
	case <-r.quit:
		return false
	}
}

// more appends the next input. The error is os.ErrDeadlineExceeded if that
// takes longer than limit, where 0 means no limit, and io.EOF at the end.
func (r *keyReader) more(typed *[]byte, limit time.Duration) error {
	for {
		ready, err := r.wait(limit)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case !ready:
			return os.ErrDeadlineExceeded
		}
		buf := make([]byte, 1024)
		n := 0
		err = control(r.tty, func(fd int) (err error) { n, err = unix.Read(fd, buf); return err })
		switch {
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
			continue
		case err != nil:
			return err
		case n <= 0:
			return io.EOF
		}
		*typed = append(*typed, buf[:n]...)
		return nil
	}
}

// wait waits for input. If close was called, it returns io.EOF.
func (r *keyReader) wait(limit time.Duration) (ready bool, err error) {
	var timeout *unix.Timeval
	if limit > 0 {
		t := unix.NsecToTimeval(limit.Nanoseconds())
		timeout = &t
	}
	err = control(r.tty, func(tty int) error {
		return control(r.wake, func(wake int) error {
			var set unix.FdSet
			set.Set(tty)
			set.Set(wake)
			if _, err := unix.Select(max(tty, wake)+1, &set, nil, nil, timeout); err != nil {
				return err
			}
			if set.IsSet(wake) {
				return io.EOF
			}
			ready = set.IsSet(tty)
			return nil
		})
	})
	return ready, err
}
