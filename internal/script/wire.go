package script

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of messages between the two processes.
const (
	msgStart  = 'S' // to the engine: startMessage and the script
	msgReply  = 'R' // to the engine: replyHeader, the structured content and the text
	msgStop   = 'T' // to the engine: the name of the limit that ended the script
	msgCall   = 'C' // from the engine: callMessage
	msgCancel = 'X' // from the engine: the call's result is no longer needed
	msgAt     = 'A' // from the engine: the position that it has reached
	msgPrint  = 'P' // from the engine: a line
	msgEnd    = 'E' // from the engine: endMessage
)

// maxMessage is the maximum length of a message from the engine, in bytes.
const maxMessage = 256 << 20

// startMessage tells the engine what to do. The script follows it.
type startMessage struct {
	Name   string          `json:"name"` // for positions
	Params json.RawMessage `json:"params"`
	Limits Limits          `json:"limits"`
	Check  bool            `json:"check,omitempty"`  // only find the calls
	Shared bool            `json:"shared,omitempty"` // the messages that follow go through shared memory
}

// Limits end a script. 0 or a negative value means no limit.
type Limits struct {
	Steps   uint64        `json:"steps"`   // of the interpreter
	Calls   int           `json:"calls"`   // of tools
	Memory  uint64        `json:"memory"`  // bytes
	Output  int64         `json:"output"`  // bytes of printed lines
	Result  int64         `json:"result"`  // bytes of the result
	Timeout time.Duration `json:"timeout"` // without the time that a person takes to answer
}

// Names of the limits, as in [Failure.Limit].
const (
	LimitSteps   = "steps"
	LimitCalls   = "calls"
	LimitMemory  = "memory"
	LimitTimeout = "timeout"
	LimitOutput  = "limits.output"
	LimitResult  = "limits.result"
)

// The kinds of failures.
const (
	KindSyntax = "syntax" // the script cannot be parsed
	KindScript = "script" // its own mistake
	KindCall   = "call"   // a call failed
	KindLimit  = "limit"  // it reached a limit
)

// Failure says why a script ended early.
type Failure struct {
	Kind    string `json:"kind"`
	At      string `json:"at"` // FILE:LINE:COL
	Message string `json:"message,omitempty"`
	Limit   string `json:"limit,omitempty"` // with KindLimit
	Call    uint32 `json:"call,omitempty"`  // with KindCall, the call that failed
}

func (f *Failure) Error() string {
	if f.Kind == KindLimit {
		return fmt.Sprintf("%s: the script reached its limit %s", f.At, f.Limit)
	}
	return f.At + ": " + f.Message
}

// kinds of calls from the engine.
const (
	callTool     = "tool"
	callSearch   = "search"
	callDescribe = "describe"
)

type callMessage struct {
	Kind   string          `json:"kind"`
	Path   []string        `json:"path"` // the name of the tool, or of a server and its tool; or the query
	Params json.RawMessage `json:"params,omitempty"`
	Full   bool            `json:"full,omitempty"`  // the text is needed in addition to the structured content
	Alone  bool            `json:"alone,omitempty"` // nothing else in the script runs meanwhile
	At     string          `json:"at"`              // FILE:LINE:COL
}

// replyHeader is the outcome of a call. The structured content and the text follow it.
type replyHeader struct {
	Error      string `json:"error,omitempty"` // "" if the call succeeded
	Category   string `json:"category,omitempty"`
	Ends       bool   `json:"ends,omitempty"` // the error ends the script
	Structured int    `json:"structured"`     // bytes
	Parts      []Part `json:"parts,omitempty"`
}

// Part is a part of a result: text, or content by its number, from 1.
type Part struct {
	Text     string `json:"text,omitempty"`
	Media    int    `json:"media,omitempty"` // 0 for text
	Kind     string `json:"kind,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	URI      string `json:"uri,omitempty"`
}

type endMessage struct {
	Failure *Failure  `json:"failure,omitempty"`
	Parts   []Part    `json:"parts,omitempty"`
	Object  bool      `json:"object,omitempty"` // the only part is a JSON object
	Calls   []Mention `json:"calls,omitempty"`  // of a check
}

// link is one side of the connection between the two processes. Sending is safe for
// concurrent use.
type link struct {
	in      *bufio.Reader
	most    int           // maximum length of a received message, in bytes
	pipeIn  *bufio.Reader // from and to the other process
	pipeOut io.Writer
	shared  *ringReader // the source of in; nil means the pipe
	poller  poller
	busy    bool // this process is busy and does not poll for messages

	mu  sync.Mutex
	out *bufio.Writer // nil means closed
}

const bufferSize = 64 << 10

func newLink(in io.Reader, out io.Writer, most int) *link {
	pipe := bufio.NewReaderSize(in, bufferSize)
	return &link{in: pipe, out: bufio.NewWriterSize(out, bufferSize), pipeIn: pipe, pipeOut: out, most: most}
}

// share makes the link use shared memory from now on.
func (l *link) share(from, to *ring, wait func() error) {
	l.shared = &ringReader{ring: from, wait: wait}
	l.in = bufio.NewReaderSize(l.shared, bufferSize)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = bufio.NewWriterSize(&ringWriter{ring: to, bell: l.pipeOut}, bufferSize)
}

// close makes sending fail from now on. Shared memory may be freed once nothing is being received.
func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = nil
}

// ready reports whether a message has arrived, or its beginning.
func (l *link) ready() bool {
	return l.in.Buffered() > 0 || l.shared != nil && l.shared.ready()
}

// awaitMessage waits until a message may have arrived, or the other process is gone.
func (l *link) awaitMessage() error {
	if _, err := l.pipeIn.Peek(1); err != nil || l.shared == nil {
		return err
	}
	_, err := l.pipeIn.Discard(l.pipeIn.Buffered())
	return err
}

// await waits for a message in shared memory. Only one caller may receive.
func (l *link) await() error {
	if !l.busy && l.poller.poll(l.shared.ready) {
		return nil
	}
	l.shared.looking.Store(0)
	defer l.shared.looking.Store(1)
	if l.shared.ready() {
		return nil
	}
	return l.awaitMessage()
}

// send sends a message: its header as JSON, then the other parts unchanged.
func (l *link) send(kind byte, id uint32, header any, parts ...[]byte) error {
	head, err := json.Marshal(header)
	if err != nil {
		return err
	}
	n := len(head)
	for _, p := range parts {
		n += len(p)
	}
	if n > maxMessage {
		return errTooLong
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var prefix [13]byte
	prefix[0] = kind
	binary.BigEndian.PutUint32(prefix[1:], id)
	binary.BigEndian.PutUint32(prefix[5:], uint32(len(head)))
	binary.BigEndian.PutUint32(prefix[9:], uint32(n))
	if l.out == nil {
		return io.ErrClosedPipe
	}
	_, err = l.out.Write(prefix[:])
	for _, p := range append([][]byte{head}, parts...) {
		if err == nil {
			_, err = l.out.Write(p)
		}
	}
	if err == nil {
		err = l.out.Flush()
	}
	return err
}

type message struct {
	kind   byte
	id     uint32
	header json.RawMessage
	body   []byte
}

func (l *link) receive() (message, error) {
	var prefix [13]byte
	if _, err := io.ReadFull(l.in, prefix[:]); err != nil {
		return message{}, err
	}
	head, n := binary.BigEndian.Uint32(prefix[5:]), binary.BigEndian.Uint32(prefix[9:])
	if head > n || int64(n) > int64(l.most) {
		return message{}, fmt.Errorf("%w of %d bytes", errProtocol, n)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(l.in, data); err != nil {
		return message{}, err
	}
	return message{prefix[0], binary.BigEndian.Uint32(prefix[1:]), data[:head:head], data[head:]}, nil
}

// The two processes exchange messages through shared memory. While the reader polls for the next
// message, passing one needs no system call and wakes no process, which would take longer than most
// calls. A reader that has stopped polling waits for a byte in its pipe, where it also notices that
// the other process is gone. Systems without such memory use only the pipes.

// ringSize is the size of the buffer for each direction: a power of two, in bytes.
const ringSize = 128 << 10

// ring is a buffer in shared memory for one direction. Each counter has its own cache line.
type ring struct {
	written atomic.Uint32 // bytes in total, modulo 2^32; set by the writer
	_       [60]byte
	read    atomic.Uint32 // likewise, set by the reader
	_       [60]byte
	looking atomic.Uint32 // 1 if the reader polls instead of waiting for its pipe; set by the reader
	_       [60]byte
	data    [ringSize]byte
}

// rings is the shared memory: the buffer to the engine, and the one from it.
type rings [2]ring

var errProtocol = errors.New("invalid message")

// ringReader reads what the other process writes into a ring.
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

// ringWriter writes into a ring, and to bell if the reader is not polling.
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

// wake wakes the reader. It fails if there is none.
func (w *ringWriter) wake() error {
	_, err := w.bell.Write([]byte{0})
	return err
}

const (
	// spin is how long a process polls for the next message before it waits.
	spin = 500 * time.Microsecond
	// pause is the interval at which it waits for the rest of a message, or for room for it.
	pause = 20 * time.Microsecond
)

// poller polls for an event. After several unsuccessful polls it skips most of them.
type poller struct {
	vain int // number of unsuccessful polls in a row
	skip int // number of polls to skip
}

// poll reports whether done became true within a moment.
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
