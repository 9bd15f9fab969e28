package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/text"
)

// ServerError reports that a server could not be used. It wraps
// [registry.ErrSourceFailed] and the cause. It quotes text from the server,
// with control characters escaped.
type ServerError struct {
	Server string // its name in mcpServers
	Phase  string // "settings", "start", "initialize", "tools/list", "tools/call", …
	Reason string
	Cause  error // may be nil
}

func (e *ServerError) Error() string {
	switch e.Phase {
	case "start", "connect", "initialize":
		return fmt.Sprintf("server %q: %s", e.Server, e.Reason)
	}
	return fmt.Sprintf("server %q: %s: %s", e.Server, e.Phase, e.Reason)
}

func (e *ServerError) Unwrap() []error {
	if e.Cause == nil {
		return []error{registry.ErrSourceFailed}
	}
	return []error{registry.ErrSourceFailed, e.Cause}
}

// Advice tells a model what to do if the server is only busy, or a call has no result; "" if there
// is nothing to do.
func (e *ServerError) Advice() string {
	refused, isRefused := errors.AsType[*wire.HTTPError](e.Cause)
	lost, isLost := errors.AsType[*wire.SessionLostError](e.Cause)
	_, isUnusable := errors.AsType[*wire.AnswerError](e.Cause)
	switch {
	case isRefused && refused.IsBusy() && refused.Again.IsZero():
		return "The server is busy. Try again in a minute, or continue without the tool."
	case isRefused && refused.IsBusy():
		return fmt.Sprintf("The server is busy. Try again in %s, or continue without the tool.",
			max(time.Until(refused.Again).Round(time.Second), time.Second))
	case e.Phase == "tools/call" && isDisconnect(e.Cause):
		return "The server ended during the call, which may have had effects, so it was not repeated: check before you repeat it. The next call connects again."
	case e.Phase == "tools/call" && (isUnusable || isRefused && refused.MayHaveRun || isLost && lost.MayHaveRun):
		return "The server gave no result of the call, which may have had effects, so it was not repeated: check before you repeat it, or continue without the tool."
	}
	return ""
}

// connectTimeoutError is the cause of a connection's deadline.
type connectTimeoutError struct{ after time.Duration }

func (e *connectTimeoutError) Error() string {
	return fmt.Sprintf("no answer within %s (connectTimeout)", e.after)
}

func (e *connectTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// failure explains to the user why a request or the handshake failed, with the secrets of the
// settings masked.
func (c *session) failure(err error) string {
	if refused, ok := errors.AsType[*wire.HTTPError](err); ok {
		return text.Escape(c.hide(refused.Text))
	}
	if refused, ok := err.(*jsonrpc.Error); ok {
		return text.Escape(c.said(refused)) + c.clues()
	}
	return text.Escape(c.hide(c.ending(err))) + c.clues()
}

// said returns the message of a server's error with its data, which often has the cause. URLs to
// open are not shown without a check; see [ask.Handler.Addresses].
func (c *session) said(refused *jsonrpc.Error) string {
	message := refused.Message
	data, isText := jsonx.Text(refused.Data)
	if !isText && !jsonx.IsNull(refused.Data) {
		data = string(refused.Data)
	}
	if data != "" && !strings.Contains(message, data) && refused.Code != mcp.CodeURLElicitationRequired {
		message = strings.TrimPrefix(message+": "+data, ": ")
	}
	return text.Valid(text.Head(c.hide(message), maxMessage))
}

// clues returns other observations about a server that failed or did not
// answer, each preceded by "; ", with the secrets of the settings masked.
func (c *session) clues() string {
	var b strings.Builder
	if c.wire != nil {
		if id, ok := c.wire.UnexpectedAnswer(); ok {
			b.WriteString("; it answered a request that was never made, id " + text.Quote(id))
		}
	}
	if c.stdio != nil {
		if t := tail(c.child.StderrTail()); t != "" {
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

// ending describes how a connection or a child ended, or returns err if it did
// not end.
func (c *session) ending(err error) string {
	switch {
	case !isDisconnect(err):
		return err.Error()
	case c.stdio == nil:
		return "it closed the connection"
	}
	select {
	case <-c.child.Done():
		return c.child.Ending()
	case <-time.After(maxExit):
		return "it closed its stdout"
	}
}

// isDisconnect reports whether err means that the connection was lost.
func isDisconnect(err error) bool {
	lost := []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrClosed, syscall.EPIPE}
	return slices.ContainsFunc(lost, func(e error) bool { return errors.Is(err, e) })
}

// errorf returns the error for a failed request or phase of the server.
func (o *Options) errorf(phase string, cause error, reason string) error {
	return &ServerError{Server: o.Server.Name, Phase: phase, Reason: reason, Cause: cause}
}

// loginError returns the error for a login problem of the server.
func (o *Options) loginError(err *wire.LoginError) error {
	return o.errorf("login", err.Cause, text.Escape(err.Error()))
}

// diagnose returns a diagnostic about the server, or about a tool of it.
func (o *Options) diagnose(severity registry.Severity, code, tool, message, hint string) registry.Diagnostic {
	return registry.Diagnostic{
		Severity: severity,
		Code:     code,
		Source:   registry.MCPPrefix + o.Server.Name,
		Tool:     tool,
		Message:  message,
		Hint:     hint,
	}
}

// CodeNoResource is the code for a missing resource, up to revision 2025-11-25.
const CodeNoResource = -32002

// RefusedError reports that a server answered a request with an error. Message
// is the server's text.
type RefusedError struct {
	Server, Request string // Request such as "resources/read"
	Code            int64
	Message         string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("server %q: %s: MCP error %d: %s", e.Server, e.Request, e.Code, e.Message)
}

// Missing reports whether err says that a resource does not exist.
func (e *RefusedError) Missing() bool {
	return e.Request == "resources/read" && (e.Code == CodeNoResource ||
		e.Code == jsonrpc.CodeInvalidParams && strings.Contains(strings.ToLower(e.Message), "not found"))
}

// Hint says what to do if a resource does not exist; "" for other errors.
func (e *RefusedError) Hint() string {
	if !e.Missing() {
		return ""
	}
	return "toolreg servers " + e.Server + " --resources lists them"
}

// Unknown reports whether err may say that a task does not exist.
func (e *RefusedError) Unknown() bool { return e.Code == jsonrpc.CodeInvalidParams }

// NotOfferedError reports that a server does not declare a capability.
type NotOfferedError struct{ Server, What string } // What: "prompts" or "resources"

func (e *NotOfferedError) Error() string {
	return fmt.Sprintf("server %q offers no %s", e.Server, e.What)
}

// maxMessage is the maximum length of a displayed server error message, in
// bytes.
const maxMessage = 4 << 10

// maxTail is how many lines of stderr an error shows.
const maxTail = 3

// tail returns the relevant lines of a server's stderr, quoted: the error that
// npm reports, otherwise the last lines, and the error line before them if they
// do not contain one.
func tail(stderr string) string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	if causes := npmErrors(lines); len(causes) > 0 {
		return "its stderr has " + quoteAll(causes)
	}
	first := max(len(lines)-maxTail, 0)
	said := "its stderr ends "
	if cause := lastError(lines[:first]); cause != "" && lastError(lines[first:]) == "" {
		said = "its stderr has " + text.Quote(cause) + " and ends "
	}
	return said + quoteAll(lines[first:])
}

func quoteAll(lines []string) string {
	quoted := make([]string, len(lines))
	for i, line := range lines {
		quoted[i] = text.Quote(line)
	}
	return strings.Join(quoted, ", ")
}

// lastError returns the last line that mentions an error, or "". Many programs
// print the error first and a trace after it.
func lastError(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if strings.Contains(strings.ToLower(line), "error") {
			return line
		}
	}
	return ""
}

// npmErrors returns the first two lines in which npm and npx describe the
// error, without the codes before them and the advice and log name after them.
func npmErrors(lines []string) []string {
	var out []string
	for _, line := range lines {
		said, ok := strings.CutPrefix(line, "npm error ")
		if !ok {
			said, ok = strings.CutPrefix(line, "npm ERR! ") // until npm 10.6
		}
		word, rest, _ := strings.Cut(said, " ")
		if !ok || rest == "" || slices.Contains([]string{"code", "syscall", "path", "dest", "errno", "type"}, word) {
			continue
		}
		if out = append(out, strings.Join(strings.Fields(line), " ")); len(out) == 2 {
			break
		}
	}
	return out
}

// hide masks the secrets of the settings.
func (o *Options) hide(text string) string {
	if o.Hide == nil {
		return text
	}
	return o.Hide(text)
}

// hide masks the secrets of the settings, and the token of the login, in text
// from the server.
func (c *session) hide(text string) string {
	return secret.NewReplacer([]string{c.http.SentToken()}).Replace(c.mask(text))
}
