package transport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// Refusal is why a request goes no further, and how to answer it.
type Refusal struct {
	Status     int
	Reason     string
	RetryAfter int             // in seconds. Zero means that the client is not told to try again
	Code       int64           // of the JSON-RPC error in the answer. Zero means that the answer is the Reason
	ID         json.RawMessage // of the message that has a JSON-RPC error
}

func (r *Refusal) Error() string { return r.Reason }

// ErrNoSession refuses a request for a session that has ended, or does not belong to the sender.
var ErrNoSession error = &Refusal{Status: http.StatusNotFound, Reason: "session not found"}

// Refuse answers a request that goes no further. An error that is not a [Refusal] means that the
// request cannot be handled now but may be soon.
func Refuse(w http.ResponseWriter, err error) {
	no, ok := errors.AsType[*Refusal](err)
	if !ok {
		no = &Refusal{Status: http.StatusServiceUnavailable, Reason: err.Error(), RetryAfter: 1}
	}
	if no.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(no.RetryAfter))
	}
	if no.Code == 0 {
		http.Error(w, no.Reason, no.Status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(no.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": no.ID,
		"error": jsonrpc.Error{Code: no.Code, Message: no.Reason}})
}

// badRequest refuses a request that is malformed.
func badRequest(err error) error { return &Refusal{Status: http.StatusBadRequest, Reason: err.Error()} }

// CheckBody returns an error unless there is exactly one JSON value, since the SDK would read only
// the first, and each message in it passes [checkMessage]. It then applies [mendEmpty] to each
// message, in place.
func CheckBody(body json.RawMessage) error {
	if err := jsonx.Check(body, jsonx.Options{}); err != nil {
		return badRequest(err)
	}
	for _, message := range Messages(body) {
		if err := checkMessage(message); err != nil {
			return badRequest(err)
		}
		mendEmpty(message)
	}
	return nil
}

// mendEmpty replaces empty lists by empty objects where the protocol allows only objects. Clients
// in PHP cannot tell the two apart.
func mendEmpty(message json.RawMessage) {
	params := jsonx.Get(message, "params")
	capabilities := jsonx.Get(params, "capabilities")
	objects := []json.RawMessage{params, jsonx.Get(params, "_meta"), jsonx.Get(params, "arguments"), capabilities}
	for _, capability := range jsonx.Members(capabilities) {
		objects = append(objects, capability)
	}
	for _, object := range objects {
		if jsonx.IsEmptyList(object) {
			object[0], object[len(object)-1] = '{', '}'
		}
	}
}

// Messages returns the message in a body, or those of a batch.
func Messages(body json.RawMessage) []json.RawMessage {
	if batch, ok := jsonx.Elements(body); ok {
		return batch
	}
	return []json.RawMessage{body}
}

// checkMessage returns an error if a message is ambiguous, or has an id that the SDK would change.
func checkMessage(message json.RawMessage) error {
	params := jsonx.Get(message, "params")
	for _, object := range []json.RawMessage{message, params, jsonx.Get(params, "_meta")} {
		seen := map[string]bool{}
		for name := range jsonx.Members(object) {
			if seen[name] {
				return fmt.Errorf("it has the member %s twice", text.Quote(name))
			}
			seen[name] = true
		}
	}
	const most = 1<<53 - 1 // the SDK reads ids as float64 and drops fractions, so the response would have another id
	if id := jsonx.Get(message, "id"); jsonx.KindOf(id) == jsonx.Number && jsonx.Get(message, "method") != nil {
		if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n < -most || n > most {
			return errors.New("the id of a request must be a string, or an integer between -(2^53-1) and 2^53-1")
		}
	}
	return nil
}

// NameOf returns the header Mcp-Name, decoded.
func NameOf(h http.Header) string { return wire.DecodeHeader(h.Get("Mcp-Name")) }

// CheckHeaders rejects requests that a proxy in front of the server may have understood
// differently.
func CheckHeaders(r *http.Request) error {
	for name, values := range r.Header {
		if len(values) > 1 && (name == "Content-Type" || strings.HasPrefix(name, "Mcp-")) {
			return badRequest(fmt.Errorf("the header %s is given more than once", name))
		}
	}
	return nil
}

// CheckOrigin rejects requests from web pages of other origins. If loopback says that only this
// machine can reach the server, it also rejects requests for other host names, which may have been
// made to resolve to this machine (DNS rebinding).
func CheckOrigin(r *http.Request, loopback bool) error {
	if loopback && !IsLoopback(r.Host) {
		return errors.New("this server accepts only requests for localhost")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host {
			return errors.New("requests from web pages of other origins are refused")
		}
	}
	return nil
}

// IsLoopback reports whether a host, with or without a port, is this machine.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return webaddr.IsLoopback(strings.Trim(host, "[]"))
}

const (
	// MaxBody is the maximum size of a request's body, or of a message on stdin.
	MaxBody = 16 << 20
	// bodyTime is the time limit for the body of a request.
	bodyTime = 60 * time.Second
	// smallBody is the size up to which bodies are read without waiting.
	smallBody = 256 << 10
	// largeAtOnce is how many larger bodies of one client are read concurrently.
	largeAtOnce = 4
	// largePause is how long a client whose body is too large keeps its turn.
	largePause = time.Second
)

// Bodies limits how many large bodies of one client are read at a time, which bounds the memory for
// them. It is safe for concurrent use; the zero value is ready to use.
type Bodies struct {
	Time time.Duration // time limit for one body. Zero means a minute
	Max  int64         // maximum size of one body. Zero means MaxBody

	mu     sync.Mutex
	places map[string]chan struct{} // by the name of the client's token
}

// wait returns when it is the client's turn. The caller calls done after the body.
func (b *Bodies) wait(ctx context.Context, name string) (done func(), err error) {
	b.mu.Lock()
	place := b.places[name]
	if place == nil {
		if b.places == nil {
			b.places = map[string]chan struct{}{}
		}
		place = make(chan struct{}, largeAtOnce)
		b.places[name] = place
	}
	b.mu.Unlock()
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read reads a body of a client. A client whose body is too large, which is an
// [*http.MaxBytesError], is slowed down.
func (b *Bodies) read(ctx context.Context, name string, body io.Reader) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(body, smallBody))
	if err != nil || len(head) < smallBody {
		return head, err
	}
	done, err := b.wait(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	whole := bytes.NewBuffer(head)
	_, err = whole.ReadFrom(body)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		_ = timing.Pause(ctx, largePause)
	}
	return whole.Bytes(), err
}

// Read reads a request's body within the limits of its client; name is that of the client's token.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request, name string) ([]byte, error) {
	largest := cmp.Or(b.Max, MaxBody)
	tooLarge := &Refusal{Status: http.StatusRequestEntityTooLarge,
		Reason: fmt.Sprintf("the request is larger than %d MiB", largest>>20)}
	if r.ContentLength > largest {
		return nil, tooLarge
	}
	within := cmp.Or(b.Time, bodyTime)
	timing := http.NewResponseController(w)
	_ = timing.SetReadDeadline(time.Now().Add(within))
	ctx, cancel := context.WithTimeoutCause(r.Context(), within, os.ErrDeadlineExceeded)
	defer cancel()
	body, err := b.read(ctx, name, http.MaxBytesReader(w, r.Body, largest))
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		_ = timing.SetReadDeadline(time.Time{})
		return text.WithoutMark(body), nil
	case isTooLarge:
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Refusal{Status: http.StatusRequestTimeout,
			Reason: fmt.Sprintf("the request was not received within %s", within)}
	}
	return nil, badRequest(errors.New("the request body ended early"))
}
