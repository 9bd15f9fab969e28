package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/registry"
)

// codeNoResource is what servers answer for a resource that is not there, up to
// revision 2025-11-25.
const codeNoResource = -32002

// RefusedError tells that a server answered a request with an error. Message is
// the server's words.
type RefusedError struct {
	Server, Request string // Request such as "resources/read"
	Code            int64
	Message         string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("server %q: %s: MCP error %d: %s", e.Server, e.Request, e.Code, e.Message)
}

// NotOfferedError tells that a server has nothing of a kind, by its own words.
type NotOfferedError struct{ Server, What string } // What: "prompts" or "resources"

func (e *NotOfferedError) Error() string {
	return fmt.Sprintf("server %q offers no %s", e.Server, e.What)
}

// Missing reports whether err says that a resource is not there.
func (e *RefusedError) Missing() bool {
	return e.Request == "resources/read" && (e.Code == codeNoResource ||
		e.Code == jsonrpc.CodeInvalidParams && strings.Contains(strings.ToLower(e.Message), "not found"))
}

// Reading is what a server gave for a URI: one content or several.
type Reading struct {
	Contents []registry.Content // of type resource
	Raw      json.RawMessage    // the list of contents as sent
}

// ReadResource connects to the server and reads a resource. progress may be nil.
// Errors: *NotOfferedError, *RefusedError, *ServerError, the cause of ctx.
func (s *Source) ReadResource(ctx context.Context, uri string, progress func(registry.Progress)) (Reading, error) {
	x := newConversation("resource " + quote(uri))
	raw, err := s.fetch(ctx, x, progress, "resources", "resources/read", func(ctx context.Context, sess *session) error {
		params := &mcp.ReadResourceParams{URI: uri}
		params.SetProgressToken(x.token)
		s.setLogLevel(sess, params.Meta)
		_, err := sess.client.ReadResource(ctx, params)
		return err
	})
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Raw: member(raw, "contents")}
	items, ok := elements(r.Raw)
	if !ok {
		return r, s.malformed("resources/read", "its answer holds no list \"contents\"")
	}
	for i, item := range items {
		c := registry.Content{Type: registry.ContentResource}
		if !embedded(&c, item) {
			return r, s.malformed("resources/read", fmt.Sprintf("content %d is neither text nor base64", i+1))
		}
		r.Contents = append(r.Contents, c)
	}
	return r, nil
}

// Message is one message of a prompt.
type Message struct {
	Role    string           // user or assistant
	Content registry.Content // what is not known is kept as its JSON text
}

// Filled is a prompt with its arguments filled in.
type Filled struct {
	Description string
	Messages    []Message
	Raw         json.RawMessage // the list of messages as sent
}

// GetPrompt connects to the server and has it fill in a prompt. progress may be
// nil. Errors are as those of ReadResource.
func (s *Source) GetPrompt(ctx context.Context, name string, arguments map[string]string, progress func(registry.Progress)) (Filled, error) {
	x := newConversation("prompt " + quote(name))
	raw, err := s.fetch(ctx, x, progress, "prompts", "prompts/get", func(ctx context.Context, sess *session) error {
		params := &mcp.GetPromptParams{Name: name, Arguments: arguments}
		params.SetProgressToken(x.token)
		s.setLogLevel(sess, params.Meta)
		_, err := sess.client.GetPrompt(ctx, params)
		return err
	})
	if err != nil {
		return Filled{}, err
	}
	f := Filled{Raw: member(raw, "messages")}
	f.Description, _ = text(member(raw, "description"))
	items, ok := elements(f.Raw)
	if !ok {
		return f, s.malformed("prompts/get", "its answer holds no list \"messages\"")
	}
	for _, item := range items {
		role, _ := text(member(item, "role"))
		c, _ := contentOf(member(item, "content"))
		f.Messages = append(f.Messages, Message{Role: role, Content: c})
	}
	return f, nil
}

// fetch makes one request of the person's own, and answers what the server asks
// before it answers.
func (s *Source) fetch(ctx context.Context, x *exchange, progress func(registry.Progress), what, method string, send request) (json.RawMessage, error) {
	sess, err := s.live(ctx)
	if err != nil {
		return nil, err
	}
	if !sess.offers(what) {
		return nil, &NotOfferedError{Server: s.opts.Server.Name, What: what}
	}
	x.progress = progress
	x.setToken(sess)
	raw, sess, err := s.exchange(ctx, sess, x, send)
	switch {
	case err == nil && !isObject(raw):
		return nil, s.malformed(method, "the server answered with no result object")
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("server %q: %s: %w", s.opts.Server.Name, method, context.Cause(ctx))
	}
	var unmet *inputError
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &unmet):
		return nil, &RefusedError{Server: s.opts.Server.Name, Request: method, Message: unmet.reason}
	case errors.As(err, &refused) && refused.Code != codeRejected:
		return nil, &RefusedError{Server: s.opts.Server.Name, Request: method, Code: refused.Code, Message: cut(sess.hide(refused.Message), maxNote)}
	}
	return nil, s.errorf(method, err, sess.failure(err))
}

func (s *Source) malformed(phase, reason string) error { return s.errorf(phase, nil, reason) }
