package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// ServerError reports that a server could not be used. It wraps
// [registry.ErrSourceFailed] and the cause. Text from the server is quoted in
// it, with control characters escaped.
type ServerError struct {
	Server string // its name in mcpServers
	Phase  string // "settings", "start", "initialize", "tools/list", "tools/call", …
	Reason string
	Cause  error // may be nil

	hint string // what to do; may be empty
}

// Error returns one line: the server and the reason, with the request that failed
// unless that was the first.
func (e *ServerError) Error() string {
	switch e.Phase {
	case "start", "connect", "initialize":
		return fmt.Sprintf("server %q: %s", e.Server, e.Reason)
	}
	return fmt.Sprintf("server %q: %s: %s", e.Server, e.Phase, e.Reason)
}

// Unwrap returns ErrSourceFailed and the cause.
func (e *ServerError) Unwrap() []error {
	if e.Cause == nil {
		return []error{registry.ErrSourceFailed}
	}
	return []error{registry.ErrSourceFailed, e.Cause}
}

// Hint says what to do; "" if that is unknown.
func (e *ServerError) Hint() string { return e.hint }

// ArgsInCommand splits the command of a server that includes its arguments; ok
// is false if it does not.
func ArgsInCommand(server settings.Server) (command string, args []string, ok bool) {
	words, err := process.Split(server.Command)
	if err != nil || len(words) < 2 {
		return "", nil, false
	}
	return words[0], append(words[1:], server.Args...), true
}

// argsHint shows the correct entry for a server with arguments in its command;
// "" for others.
func argsHint(server settings.Server) string {
	command, args, ok := ArgsInCommand(server)
	list, err := json.Marshal(args)
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprintf("put the arguments in args: at %s, write command: %s, args: %s", server.Origin, command, list)
}

// connectTimeoutError is the cause of a connection's deadline.
type connectTimeoutError struct{ after time.Duration }

func (e *connectTimeoutError) Error() string {
	return fmt.Sprintf("no answer within %s (connectTimeout)", e.after)
}

// Is reports that the error is a context.DeadlineExceeded.
func (e *connectTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// errClosed reports that Close was called.
var errClosed = errors.New("the connection was closed")

// failure describes why a request failed, or the handshake if x is nil, in words for the
// person who set the server up, with the secrets of the settings masked.
func (c *session) failure(x *transport.Exchange, err error) string {
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errClosed)
	r := cmp.Or(x.Refusal(), c.http.LastRefusal())
	if r != nil && !late {
		return text.Escape(c.hide(r.Text))
	}
	return text.Escape(c.hide(c.ending(err))) + c.clues()
}

// clues returns other observations of a server that failed or did not answer,
// each after "; ", with the secrets of the settings masked.
func (c *session) clues() string {
	var b strings.Builder
	if c.conn != nil {
		if id, ok := c.conn.UnexpectedAnswer(); ok {
			b.WriteString("; it answered a request that was never made, id " + text.Quote(id))
		}
	}
	if c.stdio != nil {
		if t := tail(c.stdio.Child.StderrTail()); t != "" {
			b.WriteString("; " + t)
		}
		if skipped := c.stdio.Skipped(); skipped.Lines > 0 {
			b.WriteString("; its stdout contains text that is not a message: " + text.Quote(skipped.First))
		}
	}
	return c.hide(b.String())
}

// maxExit is how long to wait for a server that closed its stdout to exit.
const maxExit = time.Second

// ending says how a connection or a child ended, or returns err if it did not.
func (c *session) ending(err error) string {
	switch {
	case !isDisconnect(err):
		return c.reason(err)
	case c.stdio == nil:
		return "it closed the connection"
	}
	timer := time.NewTimer(maxExit)
	defer timer.Stop()
	select {
	case <-c.stdio.Child.Done():
		return fmt.Sprintf("it exited (%s)", c.stdio.Child.Exit())
	case <-timer.C:
		return "it closed its stdout"
	}
}

// reason is the text of an error without what its phase already says.
func (c *session) reason(err error) string {
	reason := err.Error()
	if strings.HasPrefix(reason, "unsupported protocol version") { // the SDK's error has no type
		if c.version() == "" {
			return "its answer to initialize has no protocolVersion"
		}
		return fmt.Sprintf("it speaks revision %s of the protocol, and toolreg speaks %s",
			text.Quote(c.version()), strings.Join(mcp.SupportedProtocolVersions(), ", "))
	}
	if field, ok := wrongField(reason); ok {
		return fmt.Sprintf("its answer is malformed: %s has the wrong type", field)
	}
	for _, verb := range []string{"calling \"", "sending \""} { // the SDK's words before a method
		if after, ok := strings.CutPrefix(reason, verb); ok {
			if _, rest, ok := strings.Cut(after, "\": "); ok {
				reason = rest
			}
		}
	}
	return reason
}

// version returns the revision that initialize was answered with.
func (c *session) version() string {
	if c.conn == nil {
		return ""
	}
	v, _ := jsonx.Text(jsonx.Get(c.conn.HandshakeResult(), "protocolVersion"))
	return v
}

// wrongField returns the field of an answer that could not be decoded for its
// type: the SDK's decoder returns an untyped error.
func wrongField(reason string) (field string, ok bool) {
	_, rest, found := strings.Cut(reason, "json: cannot unmarshal ")
	if i := strings.LastIndex(rest, " into Go struct field "); found && i >= 0 {
		field, _, ok = strings.Cut(rest[i+len(" into Go struct field "):], " of type ")
		parts := strings.Split(field, ".")
		for len(parts) > 1 && (parts[0] == "mcp" || strings.IndexFunc(parts[0], unicode.IsUpper) == 0) {
			parts = parts[1:] // the package, or a type that has the field
		}
		field = strings.Join(parts, ".")
	}
	return field, ok
}

// isDisconnect reports whether err means that the connection broke. The SDK
// gives different errors for the call that saw it happen and those after it.
func isDisconnect(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE, mcp.ErrConnectionClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
