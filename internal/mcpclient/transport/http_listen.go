package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// listeningKey marks requests that open a stream of the server's own messages. Their
// failure does not explain that of any other request.
type listeningKey struct{}

func isListening(ctx context.Context) bool { return ctx.Value(listeningKey{}) != nil }

// listen opens the stream of a session's own messages after the event with the
// id last, "" for none.
func (h *HTTP) listen(ctx context.Context, session, last string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(context.WithValue(ctx, listeningKey{}, true), http.MethodGet, h.endpoint, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return h.stream(r)
}

// listenForChanges opens the stream that answers a request for notifications.
func (h *HTTP) listenForChanges(ctx context.Context, revision, method string, body []byte) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(context.WithValue(ctx, listeningKey{}, true), http.MethodPost, h.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", revision)
	r.Header.Set("Mcp-Method", method)
	return h.stream(r)
}

func (h *HTTP) stream(r *http.Request) (io.ReadCloser, error) {
	resp, err := h.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s, content type %q", resp.Status, text.Head(kind, 100))
	}
	return resp.Body, nil
}
