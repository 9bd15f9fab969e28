package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// streams are what a command reads and writes. out carries results alone.
type streams struct {
	in                    io.Reader
	out, err              io.Writer
	stdout                io.Writer // what is behind out, for its size
	inTTY, outTTY, errTTY bool
}

// errReaderGone tells that nobody reads stdout any more.
var errReaderGone = errors.New("the reader of stdout is gone")

// pipeWriter writes results. When the reader is gone it calls gone once and
// swallows the rest: that is no error (spec section 3). Any other failure is
// kept, so that no result is lost in silence. It is safe for concurrent use.
type pipeWriter struct {
	w    io.Writer
	gone func()

	mu     sync.Mutex
	broken bool
	err    error
}

func (p *pipeWriter) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return len(b), nil
	}
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.broken = true
		p.gone()
		return len(b), nil
	}
	if err != nil {
		err = fmt.Errorf("writing the result: %w", err)
		if p.err == nil {
			p.err = err
		}
	}
	return n, err
}

// watch looks whether the reader is gone while nothing is written, until stop is
// called.
func (p *pipeWriter) watch() (stop func()) {
	f, ok := p.w.(*os.File)
	if !ok {
		return func() {}
	}
	quit := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			if readerGone(f) {
				p.mu.Lock()
				p.broken = true
				p.mu.Unlock()
				p.gone()
				return
			}
		}
	})
	return func() { close(quit); watching.Wait() }
}

func (p *pipeWriter) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pipeWriter) isBroken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// patience reads what may never come, such as stdin or a named pipe, until ctx
// is done.
type patience struct {
	done  <-chan struct{}
	cause func() error
}

func newPatience(ctx context.Context) patience {
	return patience{ctx.Done(), func() error { return context.Cause(ctx) }}
}

// read returns what get returns, or the cause of ctx. A get that nobody waits
// for any more ends with the process.
func (p patience) read(get func() ([]byte, error)) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	got := make(chan outcome, 1)
	go func() {
		data, err := get()
		got <- outcome{data, err}
	}()
	select {
	case o := <-got:
		return o.data, o.err
	case <-p.done:
		return nil, p.cause()
	}
}

// patientReader is a reader whose reads end with ctx.
type patientReader struct {
	patience
	r io.Reader
}

func (p *patientReader) Read(b []byte) (int, error) {
	data, err := p.read(func() ([]byte, error) {
		own := make([]byte, len(b)) // b is the caller's again when ctx is done
		n, err := p.r.Read(own)
		return own[:n], err
	})
	return copy(b, data), err
}
