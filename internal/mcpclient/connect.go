package mcpclient

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// How long to wait for the answer to a probe before also sending initialize. HTTP servers answer
// every request, but a server that is waking up takes time, and a modern one rejects initialize.
// The long window is for servers that are known to be modern.
const (
	stdioWindow = 150 * time.Millisecond
	httpWindow  = 3 * time.Second
	knownWindow = 5 * time.Second
)

func firstAttempt(s settings.Server, known string) attempt {
	a := attempt{transport: transportOf(s), window: stdioWindow}
	if a.transport == transportHTTP {
		a.window = httpWindow
	}
	switch {
	case a.transport == transportSSE || s.Protocol == "legacy":
		a.mode = wire.ModeLegacy // SSE ended with the legacy revisions
	case s.Protocol == "modern":
		a.mode = wire.ModeModern
	case known == knownLegacy:
		a.mode, a.remembered = wire.ModeLegacy, true
	case known == knownModern:
		a.window = knownWindow
	case known == knownSSE && mayBeSSE(s):
		a.transport, a.mode, a.remembered = transportSSE, wire.ModeLegacy, true
	}
	return a
}

// mayBeSSE reports whether the settings leave the HTTP transport open.
func mayBeSSE(s settings.Server) bool {
	return s.HTTPURL == "" && s.URL != "" && s.Type == "" && s.Protocol != "modern"
}

// connect starts or reaches the server, with further attempts if the first one
// fails. The error is a *ServerError, or the *document.Error of the server's
// entry.
func (c *connector) connect(ctx context.Context) (*session, error) {
	server := c.opts.Server
	if server.Err != nil {
		return nil, server.Err
	}
	if c.opts.Expand != nil {
		var err error
		if server, err = c.opts.Expand(ctx, server); err != nil {
			return nil, c.opts.errorf("settings", err, err.Error())
		}
	}
	if c.opts.Keep != nil && c.keeper == nil && transportOf(server) == transportStdio && c.opts.owner(ctx) == nil {
		if sess, err := c.attach(ctx, server); !errors.Is(err, errNotKept) {
			return sess, err
		}
	}
	if sess := c.resume(ctx, server); sess != nil {
		return sess, nil
	}
	a := firstAttempt(server, "")
	remember := sync.OnceFunc(func() {
		a = firstAttempt(server, c.known(ctx))
	})
	if a.transport != transportStdio {
		remember()
	}
	var refused error // the error of streamable HTTP from a server that may support only SSE
	for {
		sess, err := c.dial(ctx, server, a.transport, func() attempt {
			remember() // while the program starts
			return a
		})
		if err == nil {
			c.leaveOpen(ctx, server, sess)
			return sess, nil
		}
		c.opts.log().Debug("could not connect", "transport", a.transport,
			"mode", int(a.mode), "error", sess.hide(err.Error()))
		next, again := nextAttempt(server, a, err)
		switch {
		case refused != nil && isNotStreamable(err): // the server supports neither transport
			err = refused
		case !again || ctx.Err() != nil || next.transport != a.transport:
			err = c.connectError(sess, err)
		}
		sess.end()
		if !again || ctx.Err() != nil {
			return nil, err
		}
		if next.transport != a.transport {
			refused = err
		}
		a = next
	}
}

// nextAttempt returns what to try after a failed attempt; false if no other attempt can succeed. A
// server is restarted only if that can help.
func nextAttempt(server settings.Server, a attempt, err error) (attempt, bool) {
	_, start := errors.AsType[*process.StartError](err)
	_, login := errors.AsType[*wire.LoginError](err)
	if start || login {
		return a, false
	}
	if a.remembered { // what worked before failed: start over
		return firstAttempt(server, ""), true
	}
	switch {
	case a.mode == wire.ModeAuto && a.transport == transportStdio && isDisconnect(err):
		// The probe may have made it exit.
		a.mode = wire.ModeLegacy
		return a, true
	case a.transport == transportHTTP && mayBeSSE(server) && isNotStreamable(err):
		return attempt{transport: transportSSE, mode: wire.ModeLegacy}, true
	}
	return a, false
}

// isNotStreamable reports whether a refusal may come from a server that
// supports only the older HTTP transport (revision 2025-11-25, transports,
// backwards compatibility).
func isNotStreamable(err error) bool {
	refused, ok := errors.AsType[*wire.HTTPError](err)
	if !ok || refused.Status < 400 || refused.Status > 499 {
		return false
	}
	switch refused.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return false
	}
	return true
}

func (c *connector) connectError(sess *session, err error) error {
	phase := "initialize"
	login, refused := errors.AsType[*wire.LoginError](err)
	start, failed := errors.AsType[*process.StartError](err)
	switch {
	case refused:
		return c.opts.loginError(login)
	case failed:
		reason := text.Escape(sess.hide(start.Error()))
		if c.opts.Server.Split {
			reason += "; this is the first word of its command, because no file is named like the whole"
		}
		return &ServerError{Server: c.opts.Server.Name, Phase: "start", Reason: reason, Cause: err}
	case sess.wire == nil:
		phase = "connect"
	}
	return c.opts.errorf(phase, err, sess.failure(err))
}
