package script

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// stepsAtOnce is the number of steps after which a thread adds them to those of the script.
const stepsAtOnce = 10_000

type engine struct {
	start startMessage
	link  *link
	file  *syntax.File
	over  chan struct{} // closed when a limit ends the script

	steps   atomic.Uint64
	calls   atomic.Int64
	printed atomic.Int64
	last    atomic.Uint32 // id of the last call

	receiving sync.Mutex // whoever holds it receives

	mu      sync.Mutex
	reached string // the limit that ended the script
	waiting map[uint32]chan message
	threads map[*starlark.Thread]bool
}

// end ends the script because of a limit, unless it is already ending.
func (e *engine) end(limit string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reached != "" {
		return
	}
	e.reached = limit
	close(e.over)
	for t := range e.threads {
		t.Cancel(limit)
	}
}

func (e *engine) limit() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reached
}

// receive receives messages while no call does. It ends the script when the other process is gone.
func (e *engine) receive() {
	for {
		err := e.link.awaitMessage()
		e.receiving.Lock()
		for err == nil && e.link.ready() {
			err = e.next()
		}
		e.receiving.Unlock()
		if err != nil {
			e.end(LimitTimeout)
			return
		}
	}
}

// next receives a message. The caller must hold e.receiving.
func (e *engine) next() error {
	m, err := e.link.receive()
	switch {
	case err != nil:
	case m.kind == msgStop:
		e.end(LimitTimeout)
	case m.kind == msgReply:
		e.mu.Lock()
		c := e.waiting[m.id]
		delete(e.waiting, m.id)
		e.mu.Unlock()
		if c != nil {
			c <- m
		}
	}
	return err
}

// poll receives messages for a moment, until a reply has arrived.
func (e *engine) poll(replied <-chan message) {
	if e.link.shared == nil || !e.receiving.TryLock() {
		return
	}
	defer e.receiving.Unlock()
	e.link.shared.looking.Store(1)
	var err error
	e.link.poller.poll(func() bool {
		if e.link.ready() {
			err = e.next()
		}
		return len(replied) > 0 || err != nil
	})
	e.link.shared.looking.Store(0)
	for err == nil && e.link.ready() { // what arrives from here on also has a byte in the pipe
		err = e.next()
	}
	if err != nil {
		e.end(LimitTimeout)
	}
}

// where returns the position that a thread has reached, or the start of the script if that is
// unknown. It is used while an operation does not end, so nothing else changes the stack.
func (e *engine) where() (at string) {
	defer func() {
		_ = recover()
		at = cmp.Or(at, e.start.Name+":1:1")
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	for t := range e.threads {
		if at = e.place(t); at != "" {
			break
		}
	}
	return at
}

// place returns the innermost position in the script that a thread has reached.
func (e *engine) place(t *starlark.Thread) string {
	at, _ := t.Local("at").(string)
	return cmp.Or(e.innermost(t.CallStack()), at)
}

// innermost returns the innermost position in the script of a stack; "" if there is none.
func (e *engine) innermost(stack starlark.CallStack) string {
	for _, frame := range slices.Backward(stack) { // the innermost is last
		if frame.Pos.Filename() == e.start.Name && frame.Pos.Line > 0 {
			return frame.Pos.String()
		}
	}
	return ""
}

// thread returns a new thread, whose calls no longer wait for replies when cancelled is
// closed; nil is never closed. The caller must call the function when it has ended.
func (e *engine) thread(name, at string, cancelled chan struct{}) (*starlark.Thread, func()) {
	t := &starlark.Thread{Name: name, Print: e.print}
	t.SetLocal("at", at)
	t.SetLocal("cancelled", cancelled)
	counted := uint64(0)
	count := func() uint64 {
		total := e.steps.Add(t.Steps - counted)
		counted = t.Steps
		return total
	}
	t.OnMaxSteps = func(t *starlark.Thread) {
		total, most := count(), e.start.Limits.Steps
		if most > 0 && total >= most {
			e.end(LimitSteps)
			return
		}
		next := uint64(stepsAtOnce)
		if most > 0 {
			next = min(next, most-total)
		}
		t.SetMaxExecutionSteps(t.Steps + next)
	}
	t.SetMaxExecutionSteps(1) // count from the first step
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reached != "" {
		t.Cancel(e.reached)
	}
	e.threads[t] = true
	return t, func() {
		count()
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.threads, t)
	}
}

// panicked returns the error of an operation that panicked. Go panics when a value of an
// impossible length is to be allocated; then the script has reached its memory limit.
func (e *engine) panicked(p any) error {
	if text := fmt.Sprint(p); strings.Contains(text, "out of range") ||
		strings.Contains(text, "too large") || strings.Contains(text, "overflow") {
		e.end(LimitMemory)
	}
	return errors.New(fmt.Sprint("the operation failed: ", p))
}

func (e *engine) print(_ *starlark.Thread, line string) {
	if total := e.printed.Add(int64(len(line)) + 1); e.start.Limits.Output > 0 && total > e.start.Limits.Output {
		e.end(LimitOutput)
		return
	}
	if err := e.link.send(msgPrint, 0, nil, []byte(validText(line))); err != nil {
		e.end(LimitOutput)
	}
}

type placedError struct {
	at  string
	err error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }
