package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Reading is the server's response to reading a URI: one or more contents.
type Reading struct {
	Contents []registry.Content // of type resource
	Raw      json.RawMessage    // the list of contents as sent
}

// ReadResource connects to the server and reads a resource. progress may be nil.
// Errors: *NotOfferedError, *RefusedError, *ServerError, the cause of ctx.
func (s *Source) ReadResource(ctx context.Context, uri string, progress func(registry.Progress)) (Reading, error) {
	request := &request{
		method: "resources/read", name: uri, progress: progress, asked: ask.NewRequest(ctx, "resource "+text.Quote(uri)),
		params: map[string]string{"uri": uri},
	}
	raw, err := s.opts.exchange(ctx, request.method, request.params, func() (json.RawMessage, error) { return s.requests.fetch(ctx, request, "resources") })
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Raw: jsonx.Get(raw, "contents")}
	items, ok := jsonx.Elements(r.Raw)
	if !ok {
		return r, s.opts.malformed("resources/read", "its answer has no list \"contents\"")
	}
	for i, item := range items {
		c := registry.Content{Type: registry.ContentResource}
		if !content.Resource(&c, item) {
			return r, s.opts.malformed("resources/read", fmt.Sprintf("content %d is neither text nor base64", i+1))
		}
		r.Contents = append(r.Contents, c)
	}
	return r, nil
}

// Message is one message of a prompt.
type Message struct {
	Role    string           // user or assistant
	Content registry.Content // unknown content has its JSON text
}

// Filled is a prompt with its arguments filled in.
type Filled struct {
	Description string
	Messages    []Message
	Raw         json.RawMessage // the list of messages as sent
}

// GetPrompt connects to the server and gets a prompt filled in with arguments.
// progress may be nil. Errors are those of ReadResource.
func (s *Source) GetPrompt(ctx context.Context, name string, arguments map[string]string, progress func(registry.Progress)) (Filled, error) {
	request := &request{
		method: "prompts/get", name: name, progress: progress, asked: ask.NewRequest(ctx, "prompt "+text.Quote(name)),
		params: &mcp.GetPromptParams{Name: name, Arguments: arguments},
	}
	raw, err := s.opts.exchange(ctx, request.method, request.params, func() (json.RawMessage, error) { return s.requests.fetch(ctx, request, "prompts") })
	if err != nil {
		return Filled{}, err
	}
	f := Filled{Raw: jsonx.Get(raw, "messages")}
	f.Description, _ = jsonx.Text(jsonx.Get(raw, "description"))
	items, ok := jsonx.Elements(f.Raw)
	if !ok {
		return f, s.opts.malformed("prompts/get", "its answer has no list \"messages\"")
	}
	for _, item := range items {
		role, _ := jsonx.Text(jsonx.Get(item, "role"))
		c, _ := content.Block(jsonx.Get(item, "content"))
		f.Messages = append(f.Messages, Message{Role: role, Content: c})
	}
	return f, nil
}
