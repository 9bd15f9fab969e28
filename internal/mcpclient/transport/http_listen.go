package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// listeningKey marks the requests for the stream: their failure does not
// explain that of any other request.
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
