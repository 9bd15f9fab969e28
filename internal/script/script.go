// Package script runs scripts that call tools. They are written in Starlark, a small Python without
// files, network, clock or threads.
//
// A script runs in its own process, which [Run] starts and in which [Execute] runs the interpreter.
// So the limits on memory and time apply even within a single operation, and only that process is
// ended. The process that called Run makes the script's calls, like any other calls.
package script

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/process"
)

// Script is a script to run. Name, Params, Engine and Host are required.
type Script struct {
	Name   string // for positions
	Text   []byte
	Params json.RawMessage // an object
	Limits Limits
	Engine []string // command of the process, which must call [Execute]
	Host   Host
	Clock  *Clock // for the time limit; nil means nothing pauses it
}

// Host makes the calls of a script. It must be safe for concurrent use.
type Host interface {
	// Call calls a tool by its path: its name, or the names of a server and its tool.
	Call(ctx context.Context, c Call) Reply
	// Search returns the tools that match a query, as JSON.
	Search(ctx context.Context, query string) Reply
	// Describe describes a tool by its name, as JSON.
	Describe(ctx context.Context, name string) Reply
	// Print receives a line that the script prints.
	Print(line string)
}

// Call is a call of a script.
type Call struct {
	ID     uint32 // counts the calls of the script
	Path   []string
	Params json.RawMessage
	At     string // FILE:LINE:COL
}

// Reply is the outcome of a call.
type Reply struct {
	Err        string          // error text for the script; "" if the call succeeded
	Category   string          // with Err
	Ends       bool            // with Err: ends the script even if it handles errors
	Structured json.RawMessage // valid JSON; nil if there is none
	Text       string
	Parts      []Part // set if there is more than text
}

// Result is the result of a script.
type Result struct {
	Parts  []Part
	Object bool // the only part is a JSON object
}

// final is how long the engine may take to report the end of a script after its time
// limit, before it is killed.
const final = time.Second

// Run runs a script. The error is a *[Failure], the cause of ctx, or that of an engine that could
// not be started.
func Run(ctx context.Context, s Script) (Result, error) {
	end, err := s.run(ctx, false)
	return Result{end.Parts, end.Object}, err
}

// Check parses a script without running it, and returns the places in its text that use tools.
// Params and Host are not needed.
func Check(ctx context.Context, s Script) ([]Mention, error) {
	s.Params = json.RawMessage("{}")
	end, err := s.run(ctx, true)
	return end.Calls, err
}

func (s *Script) run(ctx context.Context, check bool) (endMessage, error) {
	memory, file, free := newRings()
	defer free()
	var stderr []byte // the beginning of it, which explains a crash
	// The engine collects no garbage by itself. A crash does not print the stacks of all
	// goroutines, which would hide its cause.
	child, err := process.Start(process.Spec{Argv: s.Engine,
		Env: []string{"GOGC=off", "GOTRACEBACK=none"}, Files: file, Output: func(_ int, p []byte) {
			const most = 1 << 10
			stderr = append(stderr, p[:min(len(p), most-len(stderr))]...)
		}})
	for _, f := range file {
		_ = f.Close() // the engine has the file, and the memory stays
	}
	if err != nil {
		return endMessage{}, fmt.Errorf("starting the engine of the script: %w", err)
	}
	if s.Clock == nil {
		s.Clock = &Clock{}
	}
	ctx, cancel := context.WithCancel(ctx)
	calls, stopCalls := context.WithCancel(ctx)
	defer stopCalls()
	r := &running{Script: s, link: newLink(child.Stdout, child.Stdin, maxMessage),
		calls: map[uint32]context.CancelFunc{}}
	stopped := make(chan struct{})
	kill := sync.OnceFunc(func() {
		child.Stop(0, 0)
		close(stopped)
	})
	defer func() {
		cancel() // calls whose results nobody waits for
		r.all.Wait()
		kill()
		<-stopped
		r.link.close()
	}()
	defer context.AfterFunc(ctx, kill)()
	if s.Limits.Memory > 0 {
		watchOther(ctx, strconv.Itoa(child.PID()), s.Limits.Memory, func() {
			r.grown.Store(true)
			kill()
		})
	}
	if s.Limits.Timeout > 0 {
		s.Clock.start(s.Limits.Timeout, func() {
			time.AfterFunc(final, kill)
			// This is sent before the calls fail, so that the engine knows why. An engine that is
			// gone needs no message.
			_ = r.link.send(msgStop, 0, nil)
			stopCalls()
		})
		defer s.Clock.end()
	}
	if err := r.link.send(msgStart, 0,
		startMessage{s.Name, s.Params, s.Limits, check, memory != nil}, s.Text); err != nil {
		return endMessage{}, r.explainEnd(ctx, child, &stderr, err)
	}
	if memory != nil {
		r.link.share(&memory[1], &memory[0], r.link.await)
	}
	end, err := r.serve(calls)
	if err != nil {
		return endMessage{}, r.explainEnd(ctx, child, &stderr, err)
	}
	if end.Failure != nil {
		return end, r.cause(ctx, end.Failure)
	}
	return end, nil
}

type running struct {
	*Script
	link *link
	all  sync.WaitGroup // calls
	last string         // place of the last call

	grown atomic.Bool // the engine was killed because of its memory

	mu    sync.Mutex
	calls map[uint32]context.CancelFunc
}

// serve makes the calls of the script until it ends.
func (r *running) serve(ctx context.Context) (endMessage, error) {
	for {
		r.mu.Lock()
		r.link.busy = len(r.calls) > 0
		r.mu.Unlock()
		m, err := r.link.receive()
		if err != nil {
			return endMessage{}, err
		}
		switch m.kind {
		case msgAt:
			_ = json.Unmarshal(m.header, &r.last) // written by this program
		case msgPrint:
			r.Host.Print(string(m.body))
		case msgCancel:
			r.mu.Lock()
			if cancel := r.calls[m.id]; cancel != nil {
				cancel()
			}
			r.mu.Unlock()
		case msgEnd:
			var end endMessage
			err := json.Unmarshal(m.header, &end)
			return end, err
		case msgCall:
			var c callMessage
			if err := json.Unmarshal(m.header, &c); err != nil {
				return endMessage{}, err
			}
			r.last = c.At
			if c.Alone { // waking up a goroutine takes longer than many calls
				r.answer(ctx, m.id, &c)
				continue
			}
			ctx, cancel := context.WithCancel(ctx)
			r.mu.Lock()
			r.calls[m.id] = cancel
			r.mu.Unlock()
			r.all.Go(func() {
				defer func() {
					cancel()
					r.mu.Lock()
					delete(r.calls, m.id)
					r.mu.Unlock()
				}()
				r.answer(ctx, m.id, &c)
			})
		}
	}
}

func (r *running) answer(ctx context.Context, id uint32, c *callMessage) {
	var reply Reply
	switch c.Kind {
	case callTool:
		reply = r.Host.Call(ctx, Call{ID: id, Path: c.Path, Params: c.Params, At: c.At})
	case callSearch:
		reply = r.Host.Search(ctx, c.Path[0])
	case callDescribe:
		reply = r.Host.Describe(ctx, c.Path[0])
	}
	if reply.Structured != nil && !c.Full {
		reply.Text, reply.Parts = "", nil
	}
	h := replyHeader{Error: reply.Err, Category: reply.Category, Ends: reply.Ends,
		Structured: len(reply.Structured), Parts: reply.Parts}
	if err := r.link.send(msgReply, id, h, reply.Structured, []byte(reply.Text)); errors.Is(err, errTooLong) {
		h = replyHeader{Error: "the result is too large for a script", Category: "execution"}
		_ = r.link.send(msgReply, id, h) // an engine that is gone needs no reply
	}
}

func (r *running) lastPlace() string { return cmp.Or(r.last, r.Name+":1:1") }

// cause returns why a script failed. An engine that is being ended may notice, before it is killed,
// that its input is closed, and then reports that the script ran out of time, because it does not
// know the reason.
func (r *running) cause(ctx context.Context, f *Failure) error {
	if f.Limit != LimitTimeout || r.Clock.over() {
		return f
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.grown.Load() {
		f.Limit = LimitMemory
	}
	return f
}

// explainEnd explains the end of an engine that did not report one. It reads stderr after the
// engine has ended.
func (r *running) explainEnd(ctx context.Context, child *process.Child, stderr *[]byte, err error) error {
	if r.Clock.over() {
		return &Failure{Kind: KindLimit, Limit: LimitTimeout, At: r.lastPlace()}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	child.Stop(final, 0)
	grown := r.grown.Load() || child.Exit() == "signal: SIGKILL" // by toolreg, or by the system when memory is low
	for _, sign := range []string{"out of memory", "cannot allocate", "goroutine stack exceeds"} {
		grown = grown || bytes.Contains(*stderr, []byte(sign))
	}
	if grown {
		return &Failure{Kind: KindLimit, Limit: LimitMemory, At: r.lastPlace()}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New(child.Exit())
	}
	return fmt.Errorf("the engine of the script failed: %w", err)
}

// Clock measures the time that a script takes. The zero value is ready for one [Run]. It is
// safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	left    time.Duration
	begun   time.Time // zero while it is paused or not used
	paused  int
	timer   *time.Timer // nil means there is no limit
	expired bool
}

// start calls expire when the limit is reached.
func (c *Clock) start(limit time.Duration, expire func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.begun = limit, time.Now()
	c.timer = time.AfterFunc(limit, func() {
		c.mu.Lock()
		c.expired = c.paused == 0
		expired := c.expired
		c.mu.Unlock()
		if expired {
			expire()
		}
	})
}

// Pause stops the clock until the returned function is called.
func (c *Clock) Pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 && c.timer != nil {
		c.timer.Stop()
		c.left -= time.Since(c.begun)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.paused == 0 && c.timer != nil && !c.expired {
			c.begun = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
	})
}

// over reports whether the limit was reached.
func (c *Clock) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

func (c *Clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}
