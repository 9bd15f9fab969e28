package script

import (
	"errors"
	"io"
	"runtime"
	"sync/atomic"
	"time"
)

// The two processes exchange messages through memory that both have. As long as the reader
// looks for the next message, passing one takes no system call and wakes nothing up, which
// would take longer than most calls. A reader that has stopped looking waits for a byte in its
// pipe, where it also notices that the other process is gone. Systems without such memory use
// the pipes alone.

// ringSize is the size of the buffer for each direction: a power of two, in bytes.
const ringSize = 128 << 10

// ring is a buffer of shared memory for one direction. Each of its counters is in a cache line
// of its own.
type ring struct {
	written atomic.Uint32 // bytes in total, modulo 2^32; set by the writer
	_       [60]byte
	read    atomic.Uint32 // likewise, set by the reader
	_       [60]byte
	looking atomic.Uint32 // 1: the reader looks before it waits for its pipe; set by the reader
	_       [60]byte
	data    [ringSize]byte
}

// rings are the shared memory: the buffer that leads to the engine, and the other one.
type rings [2]ring

var errProtocol = errors.New("invalid message")

// ringReader reads what the other process writes to a ring.
type ringReader struct {
	*ring
	at   uint32       // how far it has read
	wait func() error // waits a moment for more
}

func (r *ringReader) ready() bool { return r.written.Load() != r.at }

func (r *ringReader) Read(p []byte) (int, error) {
	for !r.ready() {
		if err := r.wait(); err != nil && !r.ready() {
			return 0, err
		}
	}
	n := r.written.Load() - r.at
	if n > ringSize {
		return 0, errProtocol
	}
	p = p[:min(len(p), int(n))]
	start := r.at % ringSize
	copied := copy(p, r.data[start:])
	copy(p[copied:], r.data[:])
	r.at += uint32(len(p))
	r.ring.read.Store(r.at)
	return len(p), nil
}

// ringWriter writes to a ring, and to bell for a reader that does not look.
type ringWriter struct {
	*ring
	at   uint32 // how far it has written
	bell io.Writer
}

func (w *ringWriter) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		free := ringSize - (w.at - w.read.Load())
		if free > ringSize {
			return total - len(p), errProtocol
		}
		if free == 0 {
			if err := w.wake(); err != nil { // the other process is gone
				return total - len(p), err
			}
			time.Sleep(pause)
			continue
		}
		start := w.at % ringSize
		n := copy(w.data[start:min(start+free, ringSize)], p)
		p = p[n:]
		w.at += uint32(n)
		w.written.Store(w.at)
		if w.looking.Load() == 0 {
			if err := w.wake(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

// wake wakes up the reader. It fails if there is none.
func (w *ringWriter) wake() error {
	_, err := w.bell.Write([]byte{0})
	return err
}

const (
	// spin is how long a process looks for the next message before it waits.
	spin = 500 * time.Microsecond
	// pause is how long it waits for the rest of a message, or for room for it.
	pause = 20 * time.Microsecond
)

// poller looks for something to happen. It hardly does so while that takes longer.
type poller struct {
	vain int // times in a row that it looked in vain
	skip int // times that it does not look from now on
}

// poll reports whether done reported true within a moment.
func (l *poller) poll(done func() bool) bool {
	if done() {
		return true
	}
	if l.skip > 0 || runtime.GOMAXPROCS(0) == 1 {
		l.skip--
		return false
	}
	for begin := time.Now(); time.Since(begin) < spin; {
		for range 50 {
			if done() {
				l.vain = 0
				return true
			}
		}
	}
	if l.vain++; l.vain >= 8 {
		l.skip = 64
	}
	return false
}
