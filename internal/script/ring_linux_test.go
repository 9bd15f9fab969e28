package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
)

// linked returns the two ends of a link through shared memory, and closes the pipes of the second
// end when it is told to.
func linked(t *testing.T) (a, b *link, gone func()) {
	t.Helper()
	memory, files, free := newRings()
	if memory == nil {
		t.Fatal("no shared memory")
	}
	_ = files[0].Close()
	t.Cleanup(free)
	fromB, toA, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromA, toB, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fromB.Close(); _ = toB.Close() })
	a, b = newLink(fromB, toB, maxMessage), newLink(fromA, toA, maxMessage)
	a.share(&memory[1], &memory[0], a.await)
	b.share(&memory[0], &memory[1], b.await)
	return a, b, func() { _ = fromA.Close(); _ = toA.Close() }
}

// Messages of every size arrive as they were sent, whether the reader looks for them or waits.
func TestSharedMemoryKeepsMessages(t *testing.T) {
	for _, looks := range []bool{true, false} {
		t.Run(fmt.Sprintf("looks %t", looks), func(t *testing.T) {
			t.Parallel()
			a, b, gone := linked(t)
			var other sync.WaitGroup
			defer other.Wait() // before the memory is freed
			defer gone()
			if !looks {
				a.poller.skip, b.poller.skip = 1<<30, 1<<30
			}
			sizes := []int{0, 1, ringSize - 15, ringSize - 14, ringSize, ringSize + 1, 3*ringSize + 7, 5 << 20}
			random := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				sizes = append(sizes, random.IntN(2000))
			}
			other.Go(func() { // the other end returns what it receives
				for {
					m, err := b.receive()
					if err != nil {
						return
					}
					if b.send(m.kind, m.id, nil, m.body) != nil {
						return
					}
				}
			})
			for i, n := range sizes {
				sent := make([]byte, n)
				for j := range sent {
					sent[j] = byte(j*7 + i)
				}
				if err := a.send('x', uint32(i), nil, sent[:n/3], sent[n/3:]); err != nil {
					t.Fatal(err)
				}
				m, err := a.receive()
				if err != nil || m.id != uint32(i) || m.kind != 'x' || !bytes.Equal(m.body, sent) {
					t.Fatalf("message %d of %d bytes: id %d, %d bytes, %v", i, n, m.id, len(m.body), err)
				}
			}
		})
	}
}

// Both ends notice that the other one is gone: after its last message, and when it leaves no room.
func TestSharedMemoryWithoutTheOtherProcess(t *testing.T) {
	t.Parallel()
	a, b, gone := linked(t)
	if err := b.send('x', 1, nil, []byte("last")); err != nil {
		t.Fatal(err)
	}
	gone()
	if m, err := a.receive(); err != nil || string(m.body) != "last" {
		t.Errorf("received %q, %v", m.body, err)
	}
	if _, err := a.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("received after the end: %v", err)
	}
	if err := a.send('x', 1, nil, make([]byte, 2*ringSize)); err == nil {
		t.Error("sent more than there is room for")
	}
	a.close()
	if err := a.send('x', 1, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("sent after close: %v", err)
	}
}

// Counters that the other process damaged are an error, not a read outside the memory.
func TestDamagedSharedMemory(t *testing.T) {
	t.Parallel()
	a, _, gone := linked(t)
	defer gone()
	a.shared.written.Store(ringSize + 1)
	if _, err := a.receive(); !errors.Is(err, errProtocol) {
		t.Errorf("received: %v", err)
	}
	out := &ringWriter{ring: &new(rings)[0], bell: io.Discard}
	out.read.Store(1) // more than was written
	if _, err := out.Write([]byte("x")); !errors.Is(err, errProtocol) {
		t.Errorf("written: %v", err)
	}
}
