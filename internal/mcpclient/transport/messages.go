package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// The SDK's reader of event streams ends the whole session for one line or event that
// it cannot read, and takes neither the line ends nor the byte order mark that the
// format allows. So it gets a stream that was written again: messages that it can
// decode, ids that a header can carry, pauses within bounds.

// messages is the body of an event stream as the SDK gets it.
type messages struct {
	io.Closer
	events   *eventReader
	h        *HTTP
	request  *http.Request
	exchange *Exchange // nil: of no request, or of the handshake

	rest     [][]byte // not yet read by the SDK
	end      error    // after the rest
	last     string   // id of the last event
	answered bool
	bad      error // why the last event that is no message is none
}

func (h *HTTP) messages(r *http.Request, body io.ReadCloser) *messages {
	return &messages{Closer: body, h: h, request: r, exchange: exchangeOf(r.Context()),
		events: newEventReader(body, func() int64 { return h.limit.Load().Bytes })}
}

// Read implements [io.Reader].
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.end != nil {
			return 0, m.end
		}
		m.next()
	}
	n := copy(p, m.rest[0])
	if m.rest[0] = m.rest[0][n:]; len(m.rest[0]) == 0 {
		m.rest = m.rest[1:]
	}
	return n, nil
}

// next reads an event and writes it again.
func (m *messages) next() {
	e, err := m.events.next()
	m.end = err
	if err == nil || e.isMessage() && jsonx.Valid(e.data) {
		m.write(e)
	}
	switch {
	case err == nil:
	case errors.Is(err, errLongEvent):
		m.end = io.EOF
		m.fail(m.h.limit.Load().Exceeded("message"))
	default:
		m.ended()
	}
}

func (m *messages) write(e serverEvent) {
	if e.id != "" {
		m.last = e.id
		m.add([]byte("id: " + e.id + "\n"))
	}
	if e.retry > 0 {
		m.add([]byte("retry: " + strconv.FormatInt(e.retry.Milliseconds(), 10) + "\n"))
	}
	switch {
	case e.isMessage():
		for _, data := range m.decodable(e.data) {
			m.addData(data)
		}
	case e.name == "endpoint" && !m.h.streamable && len(e.data) > 0: // the SDK waits for it
		m.add([]byte("event: endpoint\n"))
		m.addData(e.data)
	}
	m.add([]byte("\n"))
}

func (m *messages) addData(data []byte) {
	m.add([]byte("data: "), bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: ")), []byte("\n\n"))
}

func (m *messages) add(parts ...[]byte) { m.rest = append(m.rest, parts...) }

// decodable returns the messages in the data of an event, which is a message or, in
// revision 2025-03-26, may be a list of messages.
func (m *messages) decodable(data []byte) (out [][]byte) {
	list := [][]byte{data}
	if jsonx.KindOf(data) == jsonx.Array && jsonx.Valid(data) {
		list = nil
		elements, _ := jsonx.Elements(data)
		for _, e := range elements {
			list = append(list, e)
		}
	}
	for _, one := range list {
		decoded, err := jsonrpc.DecodeMessage(one)
		if err != nil {
			m.bad = noMessage(one)
			continue
		}
		if answer, ok := decoded.(*jsonrpc.Response); ok && m.exchange.answeredBy(answer.ID) {
			m.answered = true
		}
		out = append(out, one)
	}
	return out
}

// ended notes the end of the stream. If the server has not answered the request but has
// named an event, the SDK resumes the stream after it.
func (m *messages) ended() {
	if m.answered || m.exchange == nil || m.request.Context().Err() != nil {
		return
	}
	last, stalled := m.exchange.streamEnded(m.last)
	switch {
	case last != "" && !stalled:
		m.add([]byte("id: " + last + "\n\n")) // the SDK knows only those of this connection
	case m.bad != nil:
		m.fail(m.bad)
	default:
		m.fail(errors.New("it ended its answer without a result"))
	}
}

// fail answers the request of the stream with an error.
func (m *messages) fail(err error) {
	_ = m.h.refuse(m.request, err)
	if answer := m.exchange.refused(); answer != "" && !m.answered {
		m.answered = true
		m.addData([]byte(answer))
	}
}

// noMessage says that what a server sent is not a message.
func noMessage(data []byte) error {
	return errors.New("its answer is not a JSON-RPC message: " + text.Valid(text.Head(bytes.TrimSpace(data), 100)))
}

// notResumed returns what the SDK gets if the server refuses to resume the stream of an
// answer.
func (h *HTTP) notResumed(r *http.Request, resp *http.Response) *http.Response {
	answer := exchangeOf(r.Context()).refused()
	if answer == "" {
		return resp
	}
	if resp.StatusCode < 400 {
		_ = h.refuse(r, fmt.Errorf("it did not resume its answer (%s, content type %q)", resp.Status, contentType(resp)))
	}
	out := inPlaceOf(resp, http.StatusOK, "data: "+answer+"\n\n")
	out.Header = out.Header.Clone()
	out.Header.Set("Content-Type", eventStreamType)
	return out
}

// asEvents returns an answer that is a list of messages as an event stream.
func (h *HTTP) asEvents(r *http.Request, resp *http.Response, body []byte) *http.Response {
	out := inPlaceOf(resp, resp.StatusCode, "")
	out.Header, out.ContentLength = out.Header.Clone(), -1
	out.Header.Set("Content-Type", eventStreamType)
	line := strings.NewReplacer("\r", " ", "\n", " ").Replace(string(body)) // JSON has these only between values
	out.Body = h.messages(r, io.NopCloser(strings.NewReader("data: "+line+"\n\n")))
	return out
}
