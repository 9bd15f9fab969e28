package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
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
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("writing the result: %w", err)
	}
	return n, err
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
