package oauth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/webaddr"
)

// reply is the response that the browser delivers (RFC 6749 section 4.1.2, RFC
// 9207).
type reply struct {
	code, state, issuer string
	err, description    string
	codeOnly            bool // only a code was pasted, without state and issuer
}

func readReply(q url.Values) reply {
	return reply{
		code:        q.Get("code"),
		state:       q.Get("state"),
		issuer:      q.Get("iss"),
		err:         q.Get("error"),
		description: q.Get("error_description"),
	}
}

// readPasted parses the pasted text: a URL, its query, or a code.
func readPasted(pasted string) (reply, error) {
	pasted = strings.Trim(strings.TrimSpace(pasted), `"'<>`)
	query := pasted
	if before, after, found := strings.Cut(pasted, "?"); found && strings.Contains(before, "://") {
		query, _, _ = strings.Cut(after, "#")
	} else if strings.Contains(pasted, "://") {
		return reply{}, errors.New(
			"the pasted URL contains no code; paste the whole URL from the browser's address bar")
	}
	if strings.Contains(query, "state=") || strings.Contains(query, "code=") || strings.Contains(query, "error=") {
		q, err := url.ParseQuery(strings.TrimPrefix(query, "?"))
		if err != nil {
			return reply{}, errors.New(
				"the pasted text is not a URL; paste the whole URL from the browser's address bar")
		}
		return readReply(q), nil
	}
	return reply{code: pasted, codeOnly: true}, nil
}

// callback waits for the browser to return.
type callback struct {
	redirect string
	replies  chan reply   // of the listener
	server   *http.Server // nil if the redirect URI is not on this machine
	served   sync.WaitGroup
}

// listen starts the server to which the browser returns: at the redirect URI of the settings, or
// that of the registered client, or at any free port. It accepts connections only from this
// machine.
func (s *server) listen(ctx context.Context, old *record, state string) (*callback, error) {
	fixed := s.config.RedirectURI
	if fixed == "" && old != nil && old.Client.Registered {
		if back, err := openCallback(ctx, old.Client.RedirectURI, state); err == nil {
			return back, nil
		} // the port is taken: a new client gets a new one
	}
	return openCallback(ctx, fixed, state)
}

// openCallback listens at a redirect URI; "" means any free port. It accepts
// only answers with our state, because any process on this machine can connect.
func openCallback(ctx context.Context, redirect, state string) (*callback, error) {
	u := &url.URL{Scheme: "http", Host: "127.0.0.1:0", Path: "/callback"}
	if redirect != "" {
		var err error
		if err = webaddr.Check(redirect); err == nil {
			u, err = url.Parse(redirect)
		}
		if err != nil {
			return nil, fmt.Errorf("oauth.redirectUri: %w", err)
		}
	}
	back := &callback{redirect: redirect, replies: make(chan reply, 1)}
	if u.Scheme != "http" || !webaddr.IsLoopback(u.Hostname()) {
		return back, nil
	}
	host, port := u.Hostname(), u.Port()
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	port = cmp.Or(port, "80")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listening for the browser: %w", err)
	}
	if redirect == "" {
		u.Host = l.Addr().String()
		back.redirect = u.String()
	}
	back.serve(l, u, state)
	return back, nil
}

const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>toolreg</title>
<body style="font-family: sans-serif; margin: 3em">
<h1>%s</h1><p>%s</p></body></html>
`

func (b *callback) serve(l net.Listener, u *url.URL, state string) {
	path := cmp.Or(u.Path, "/")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		q := r.URL.Query()
		// Another site's page may reach us under its own host name.
		if name, at, err := net.SplitHostPort(r.Host); (err != nil || at != port || !webaddr.IsLoopback(name)) &&
			r.Host != u.Host ||
			r.Method != http.MethodGet || r.URL.Path != path ||
			subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, page, "Nothing here", "This address is used to complete a login.")
			return
		}
		_, _ = fmt.Fprintf(w, page, "Return to the terminal",
			"toolreg has received the answer. You can close this page.")
		select {
		case b.replies <- readReply(q):
		default: // only the first answer is used
		}
	})
	b.server = &http.Server{Handler: handler, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)} // the default would write to stderr
	b.served.Go(func() { _ = b.server.Serve(l) }) // close ends it
}

// maxLastPage is the time limit for delivering the last page to the browser.
const maxLastPage = time.Second

// close stops the server and waits until it has stopped.
func (b *callback) close(ctx context.Context) {
	if b.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxLastPage)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close() // close the connections that are still open
	}
	b.served.Wait()
}
