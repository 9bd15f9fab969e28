package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// pipeWriter writes results. If the reader is gone, it calls gone once and discards the
// rest, which is not an error. It keeps any other error, so that no result is lost
// silently. It is safe for concurrent use.
type pipeWriter struct {
	w    io.Writer
	gone func()

	steps atomic.Uint64 // odd during a write

	writing sync.Mutex // held during a write, which may wait for the reader
	mu      sync.Mutex
	broken  bool
	err     error
	page    *bytes.Buffer // nil means write immediately
}

// newPipeWriter returns a writer to w. gone may be called from any goroutine.
func newPipeWriter(w io.Writer, gone func()) *pipeWriter { return &pipeWriter{w: w, gone: gone} }

// Dest returns the writer to which results go.
func (p *pipeWriter) Dest() io.Writer { return p.w }

// Collect makes the writer keep what is written, until Collected is called.
func (p *pipeWriter) Collect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		p.page = &bytes.Buffer{}
	}
}

// Collected returns what was written since Collect and ends collecting. ok is false if
// Collect was not called.
func (p *pipeWriter) Collected() (page string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil {
		return "", false
	}
	page, p.page = p.page.String(), nil
	return page, true
}

// Write implements [io.Writer]. Once the reader is gone, it discards the data and
// reports success.
func (p *pipeWriter) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if n, done := p.keep(b); done {
		return n, nil
	}
	p.steps.Add(1)
	n, err := p.w.Write(b)
	p.steps.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
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

// keep collects or discards b if that is what a write does now.
func (p *pipeWriter) keep(b []byte) (n int, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken {
		return len(b), true
	}
	if p.page != nil {
		n, _ = p.page.Write(b) // a buffer: cannot fail
		return n, true
	}
	return 0, false
}

// WhenStuck calls f once a write has waited for its reader for d.
func (p *pipeWriter) WhenStuck(d time.Duration, f func()) {
	before := p.steps.Load()
	time.AfterFunc(d, func() {
		if now := p.steps.Load(); now == before && now%2 == 1 {
			f()
			return
		}
		p.WhenStuck(d, f)
	})
}

// Watch checks whether the reader is gone while nothing is written, until stop
// is called.
func (p *pipeWriter) Watch() (stop func()) {
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

// Failure returns the first write error; nil if it was that the reader is gone.
func (p *pipeWriter) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// IsBroken reports whether the reader is gone.
func (p *pipeWriter) IsBroken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}
