package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Stdio is a line-based transport. The SDK's own stops at a line that is not
// JSON, and answers canceled requests.
type Stdio struct {
	In    io.Reader
	Out   io.Writer
	Drain time.Duration   // time to answer open requests at the end of In
	Ended func()          // called at the end of In
	Stop  <-chan struct{} // closed when no more messages are to be read
}

// Connect implements mcp.Transport.
func (t *Stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &stdioConn{
		Stdio: t, answered: make(chan struct{}, 1),
		lines: make(chan line), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{},
	}
	go c.readLines()
	return c, nil
}

type line struct {
	data []byte
	err  error
}

type stdioConn struct {
	*Stdio
	lines    chan line
	closed   chan struct{}
	once     sync.Once
	answered chan struct{}     // receives a value after an answer was written
	queue    []json.RawMessage // messages of a line that were not read yet

	mu   sync.Mutex          // guards the following fields, and writing
	open map[jsonrpc.ID]bool // requests without an answer, and whether they were canceled
}

// readLines passes lines on until the input ends.
func (c *stdioConn) readLines() {
	lines := jsonx.NewStream(c.In, MaxBody)
	for {
		data, err := lines.Next()
		select {
		case c.lines <- line{data, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, jsonx.ErrLongLine) {
			return
		}
	}
}

// ErrStopped reports that the server is stopping.
var ErrStopped = errors.New("the server is stopping")

// Read implements mcp.Connection. It answers lines that are not messages itself.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) == 0 {
			if err := c.nextLine(ctx); err != nil {
				return nil, err
			}
		}
		data := c.queue[0]
		c.queue = c.queue[1:]
		var m jsonrpc.Message
		err := CheckBody(data)
		if err == nil {
			m, err = jsonrpc.DecodeMessage(data)
		}
		if err != nil {
			c.refuse(data, err)
			continue
		}
		if r, ok := m.(*jsonrpc.Request); ok {
			r.Extra = &mcp.RequestExtra{TokenInfo: withOrigin(r)}
			c.received(r)
		}
		return m, nil
	}
}

// nextLine queues the messages of the next line. A batch (revision 2025-03-26) has
// several, each of which is answered separately.
func (c *stdioConn) nextLine(ctx context.Context) error {
	var l line
	select {
	case l = <-c.lines:
	case <-c.Stop:
		l.err = ErrStopped
	case <-c.closed:
		return io.EOF
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case errors.Is(l.err, jsonx.ErrLongLine):
		c.refuse(nil, fmt.Errorf("the line is longer than %d MiB", MaxBody>>20))
		return c.nextLine(ctx)
	case l.err != nil:
		c.Ended()
		giveUp := c.Stop
		if !errors.Is(l.err, io.EOF) {
			giveUp = nil // the client waits for the answers
		}
		c.awaitAnswers(ctx, giveUp)
		return l.err
	}
	c.queue = []json.RawMessage{l.data}
	if batch, ok := jsonx.Elements(l.data); ok && len(batch) > 0 && jsonx.Valid(l.data) {
		c.queue = batch
	}
	return nil
}

// awaitAnswers waits for a limited time, or until giveUp is closed, until all requests
// except canceled ones are answered.
func (c *stdioConn) awaitAnswers(ctx context.Context, giveUp <-chan struct{}) {
	limit := time.After(c.Drain)
	for c.unanswered() {
		select {
		case <-c.answered:
		case <-c.closed:
			return
		case <-giveUp:
			return
		case <-limit:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *stdioConn) unanswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(c.open)), false)
}

// refuse responds to a line that is not a message.
func (c *stdioConn) refuse(data []byte, err error) {
	code, id := jsonrpc.CodeParseError, json.RawMessage("null")
	if jsonx.Valid(data) {
		code = jsonrpc.CodeInvalidRequest
		has := jsonx.Get(data, "id")
		if kind := jsonx.KindOf(has); kind == jsonx.String || kind == jsonx.Number {
			id = has
		}
	}
	message, _ := json.Marshal(fmt.Sprintf("not a JSON-RPC 2.0 message: %v", err))
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.Out, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`+"\n", id, code, message)
}

// received keeps track of requests, because canceled ones are not answered.
func (c *stdioConn) received(r *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.IsCall() {
		c.open[r.ID] = false
		return
	}
	var cancelled struct {
		RequestID any `json:"requestId"`
	}
	if r.Method != "notifications/cancelled" || json.Unmarshal(r.Params, &cancelled) != nil {
		return
	}
	if id, err := jsonrpc.MakeID(cancelled.RequestID); err == nil {
		if _, running := c.open[id]; running {
			c.open[id] = true
		}
	}
}

func (c *stdioConn) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := m.(*jsonrpc.Response); ok {
		cancelled := c.open[r.ID]
		delete(c.open, r.ID)
		defer func() {
			select {
			case c.answered <- struct{}{}:
			default:
			}
		}()
		if cancelled {
			return nil
		}
	}
	_, err = c.Out.Write(append(data, '\n'))
	return err
}

func (c *stdioConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (*stdioConn) SessionID() string { return "" }
