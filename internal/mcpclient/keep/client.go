package keep

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
)

type client struct {
	Attach
	k    *Keeper
	conn *net.UnixConn
	who  *caller.Caller
	out  chan net.Buffers // lines to write, in order
	gone chan struct{}    // closed when nothing more can be written or read
	once sync.Once

	mu      sync.Mutex
	running map[string]context.CancelFunc // requests of the run, by id
	asked   map[int64]chan reply          // questions to the run, by id
	serial  int64
	level   string // of log messages; "" means none were asked for
	uris    map[string]bool
}

// reply is a run's answer to a question of the server.
type reply struct {
	result json.RawMessage
	err    error
}

const (
	// maxOut is how many lines may wait for a run that does not read. Beyond that, notifications
	// are dropped and answers wait.
	maxOut = 1024
	// lastWrite limits how long a run may take to read the remaining lines when the keeper ends.
	lastWrite = time.Second
)

// serve talks to one run until it ends.
func (k *Keeper) serve(ctx context.Context, conn *net.UnixConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &client{k: k, conn: conn, out: make(chan net.Buffers, maxOut), gone: make(chan struct{}),
		running: map[string]context.CancelFunc{}, asked: map[int64]chan reply{}, uris: map[string]bool{}}
	c.who = &caller.Caller{ID: c}
	defer context.AfterFunc(ctx, c.leave)()
	var working sync.WaitGroup
	defer working.Wait()
	defer c.leave()
	working.Go(c.writeLines)
	lines := jsonx.NewStream(conn, math.MaxInt)
	first, err := lines.Next()
	if err != nil {
		return
	}
	method, _ := jsonx.Text(jsonx.Get(first, "method"))
	switch {
	case method == methodStop:
		c.offer(notification(methodHere, struct{}{}))
		k.end()
		<-k.ended
		return
	case method != methodAttach || json.Unmarshal(jsonx.Get(first, "params"), &c.Attach) != nil ||
		c.Name != k.spec.Name || !k.attach(c):
		return
	}
	defer k.detach(c)
	working.Go(c.greet)
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		c.receive(ctx, line, &working)
	}
	c.leave()
	cancel() // its requests
	c.unsubscribe(context.WithoutCancel(ctx))
}

// greet tells the run the result of the handshake with the server.
func (c *client) greet() {
	select {
	case <-c.k.decided:
	case <-c.gone:
		return
	}
	if c.k.failure != nil {
		c.finish(notification(methodFailed, c.k.failure))
		return
	}
	c.offer(notification(methodOpen, c.k.opened()))
}

// leave closes the connection at once.
func (c *client) leave() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.conn.Close()
	})
}

// finish writes what is left and a last line, and closes the connection.
func (c *client) finish(last []byte) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(lastWrite))
	c.offer(last)
	select {
	case c.out <- nil:
	default:
		go c.leave() // it does not read
	}
}

// offer writes a line, unless the run reads too slowly.
func (c *client) offer(line []byte) {
	select {
	case c.out <- net.Buffers{line}:
	default:
	}
}

// send writes a line and waits for its turn.
func (c *client) send(line ...[]byte) {
	select {
	case c.out <- line:
	case <-c.gone:
	}
}

func (c *client) writeLines() {
	defer c.leave()
	for {
		select {
		case lines := <-c.out:
			if lines == nil {
				return
			}
			if _, err := lines.WriteTo(c.conn); err != nil {
				return
			}
		case <-c.gone:
			return
		}
	}
}

// receive handles a message of the run.
func (c *client) receive(ctx context.Context, line []byte, working *sync.WaitGroup) {
	var id, method, params, result, failure json.RawMessage
	for name, value := range jsonx.Members(line) {
		switch name {
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		case "result":
			result = value
		case "error":
			failure = value
		}
	}
	name, isMethod := jsonx.Text(method)
	switch {
	case !isMethod:
		c.replied(id, result, failure)
	case id == nil && name == "notifications/cancelled":
		c.cancel(string(jsonx.Get(params, "requestId")))
	case id != nil:
		ctx, cancel := context.WithCancel(caller.With(ctx, c.who))
		key := string(id)
		c.mu.Lock()
		c.running[key] = cancel
		c.mu.Unlock()
		working.Go(func() {
			c.request(ctx, id, name, params)
			c.cancel(key)
		})
	}
}

func (c *client) cancel(id string) {
	c.mu.Lock()
	cancel := c.running[id]
	delete(c.running, id)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// request answers a request of the run.
func (c *client) request(ctx context.Context, id json.RawMessage, method string, params json.RawMessage) {
	select {
	case <-c.k.decided:
	case <-ctx.Done():
		return
	}
	if c.k.session == nil {
		return
	}
	rest, meta := split(params)
	token := meta["progressToken"]
	delete(meta, "progressToken")
	number, _ := strconv.ParseInt(string(id), 10, 64)
	r := &wire.Request{Method: method, Params: rest, Meta: meta, Relayed: true}
	if token != nil {
		r.Progress = func(p registry.Progress) { c.progress(token, p) }
	}
	var result json.RawMessage
	var err error
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		result, err = c.listPage(ctx, r)
	case "logging/setLevel":
		result, err = c.setLevel(ctx, r)
	case "resources/subscribe", "resources/unsubscribe":
		result, err = c.subscribe(ctx, r)
	default:
		r.Asked = ask.NewRequest(ctx, method)
		result, err = c.k.session.Do(ctx, r)
		if r.Asked.Unclear() {
			c.send(notification(methodUnclear, note{ID: number}))
		}
	}
	head := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"`...)
	var refused *jsonrpc.Error
	unusable, isUnusable := errors.AsType[*wire.AnswerError](err)
	switch {
	case err == nil:
		c.send(append(head, `result":`...), result, []byte("}\n"))
	case ctx.Err() != nil: // nobody waits for the answer
	case errors.As(err, &refused):
		if data, err := jsonx.Marshal(refused); err == nil {
			c.send(append(head, `error":`...), data, []byte("}\n"))
		}
	case isUnusable && c.k.session.Alive():
		c.send(notification(methodDropped, note{ID: number, Reason: unusable.Reason}))
	default: // the session has ended; the run is told separately
	}
}

// split separates the members of _meta from the other params.
func split(params json.RawMessage) (rest json.RawMessage, meta map[string]json.RawMessage) {
	meta = map[string]json.RawMessage{}
	raw := jsonx.Get(params, "_meta")
	if raw == nil {
		return params, meta
	}
	maps.Insert(meta, jsonx.Members(raw))
	rest = append(make([]byte, 0, len(params)), '{')
	for name, value := range jsonx.Members(params) {
		if name == "_meta" {
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(rest, jsonx.Quote(name)...), ':'), value...)
	}
	return append(rest, '}'), meta
}

func (c *client) progress(token json.RawMessage, p registry.Progress) {
	c.offer(notification("notifications/progress", struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total,omitempty"`
		Message  string          `json:"message,omitempty"`
	}{token, p.Done, p.Total, p.Message}))
}

// ask passes a question of the server on to the run, and returns the answer.
func (c *client) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	answered := make(chan reply, 1)
	c.mu.Lock()
	c.serial++
	id := c.serial
	c.asked[id] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asked, id)
	}()
	number := strconv.AppendInt(nil, id, 10)
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	c.send([]byte(`{"jsonrpc":"2.0","id":`), number, []byte(`,"method":`),
		[]byte(jsonx.Quote(method)), []byte(`,"params":`), params, []byte("}\n"))
	select {
	case r := <-answered:
		return r.result, r.err
	case <-c.gone:
		return nil, io.EOF
	case <-ctx.Done():
		c.offer(notification("notifications/cancelled", map[string]int64{"requestId": id}))
		return nil, context.Cause(ctx)
	}
}

// replied passes an answer of the run to its question.
func (c *client) replied(id, result, failure json.RawMessage) {
	number, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	answered := c.asked[number]
	delete(c.asked, number)
	c.mu.Unlock()
	if answered == nil {
		return
	}
	r := reply{result: result}
	if failure != nil {
		refused := &jsonrpc.Error{}
		if err := json.Unmarshal(failure, refused); err != nil {
			refused.Code = jsonrpc.CodeInternalError
		}
		r.err = refused
	}
	answered <- r
}
