package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// SSE is the [Link] over HTTP of revision 2024-11-05: one stream delivers all messages of
// the server, and its first event contains the URL to which ours are posted.
type SSE struct {
	http    *HTTP
	address string  // for our messages
	named   *signal // address is set
}

// NewSSE returns the link over h, which must not be used otherwise.
func NewSSE(h *HTTP) *SSE { return &SSE{http: h, named: newSignal()} }

// run implements [Link].
func (l *SSE) run(ctx context.Context, s *Session) error {
	resp, err := l.http.get(ctx, "", "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events := newEventReader(resp.Body, func() int64 { return l.http.limit.Load().Bytes })
	for {
		e, err := events.next()
		switch {
		case errors.Is(err, errLongEvent):
			return httpError(l.http.limit.Load().Exceeded("message"))
		case err != nil:
			return io.EOF
		case e.name == "endpoint" && l.address == "":
			if l.address, err = l.resolve(string(e.data)); err != nil {
				return httpError(err)
			}
			l.named.close()
		case e.isMessage() && jsonx.Valid(e.data):
			if err := s.receiveAll(ctx, e.data); err != nil {
				s.receiveMalformed(err)
			}
		case e.isMessage():
			s.receiveMalformed(noMessage(e.data))
		}
	}
}

// resolve returns the URL that a server specifies for our messages.
func (l *SSE) resolve(reference string) (string, error) {
	base, err := url.Parse(l.http.endpoint)
	if err != nil {
		return "", err
	}
	u, err := base.Parse(reference)
	if err != nil {
		return "", errors.New("its endpoint event contains a malformed URL")
	}
	if webaddr.Origin(u) != l.http.origin {
		return "", fmt.Errorf("it refers to an address at another origin, %s; nothing was sent there", webaddr.Origin(u))
	}
	return u.String(), nil
}

// send implements [Link].
func (l *SSE) send(ctx context.Context, s *Session, m message) error {
	select {
	case <-l.named.c:
	case <-s.over: // the session has the reason
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	resp, err := l.http.post(ctx, l.address, m)
	if err != nil {
		return err
	}
	l.http.mu.Lock()
	l.http.older = true // the server has accepted a message
	l.http.mu.Unlock()
	return resp.Body.Close()
}
