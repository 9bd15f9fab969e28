package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/content"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Prompt is a prompt that a server offers (revision 2025-11-25). Texts come
// from the server; absent values are omitted.
type Prompt struct {
	Server      string           `json:"server"`
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Icons       json.RawMessage  `json:"icons,omitempty"`
	Meta        json.RawMessage  `json:"_meta,omitempty"`
}

// Resource is a resource of a server.
type Resource struct {
	Server      string          `json:"server"`
	URI         string          `json:"uri"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mimeType,omitempty"`
	Size        int64           `json:"size,omitempty"` // bytes; absent if the server does not say
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// ResourceTemplate describes resources whose URIs are made from a template
// (RFC 6570).
type ResourceTemplate struct {
	Server      string          `json:"server"`
	URITemplate string          `json:"uriTemplate"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mimeType,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Icons       json.RawMessage `json:"icons,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// Prompts connects to the server and lists all pages of its prompts. Malformed
// prompts are left out with a diagnostic; a server without prompts also gets a
// diagnostic. The error is a *ServerError.
func (s *Source) Prompts(ctx context.Context) ([]Prompt, []registry.Diagnostic, error) {
	list, diags, err := offered(ctx, s, "prompts", listPrompts, func(p *Prompt) bool {
		p.Server, p.Icons, p.Meta = s.opts.Server.Name, registry.Icons(p.Icons), registry.Meta(p.Meta)
		return p.Name != ""
	})
	s.status.update(func(i *Info) { i.Prompts = len(list) })
	return list, diags, err
}

// Resources connects to the server and lists its resources and their templates,
// like Prompts. A server without templates is not an error.
func (s *Source) Resources(ctx context.Context) ([]Resource, []ResourceTemplate, []registry.Diagnostic, error) {
	list, diags, err := offered(ctx, s, "resources", listResources, func(r *Resource) bool {
		r.Server, r.Icons, r.Meta = s.opts.Server.Name, registry.Icons(r.Icons), registry.Meta(r.Meta)
		r.Annotations = registry.ReadHints(r.Annotations)
		return r.URI != ""
	})
	s.status.update(func(i *Info) { i.Resources = len(list) })
	if err != nil || list == nil {
		return nil, nil, diags, err
	}
	templates, more, err := offered(ctx, s, "resources", listTemplates, func(t *ResourceTemplate) bool {
		t.Server, t.Icons, t.Meta = s.opts.Server.Name, registry.Icons(t.Icons), registry.Meta(t.Meta)
		t.Annotations = registry.ReadHints(t.Annotations)
		return t.URITemplate != ""
	})
	return list, templates, append(diags, more...), err
}

// offered lists all pages of one kind; nil means that the server does not offer the capability
// what.
func offered[T any](ctx context.Context, s *Source, what, key string,
	usable func(*T) bool) (out []T, diags []registry.Diagnostic, err error) {
	diagnose := func(code, message, hint string) {
		diags = append(diags, s.opts.diagnose(registry.SeverityWarning, code, "", message, hint))
	}
	method := listMethod(key)
	raw, err := s.opts.exchange(ctx, method, struct{}{}, func() (json.RawMessage, error) {
		l, err := s.listOffers(ctx, what, key)
		if err != nil || l == nil {
			return nil, err
		}
		if l.cut != "" {
			diagnose("listing_cut", method+": "+l.cut, "")
		}
		return jsonx.Marshal(append([]json.RawMessage{}, l.items...))
	})
	if err != nil {
		return nil, diags, err
	}
	items, ok := jsonx.Elements(raw)
	if !ok {
		diagnose("not_offered", fmt.Sprintf("server %q offers no %s", s.opts.Server.Name, what), "")
		return nil, diags, nil
	}
	out = make([]T, 0, len(items))
	for i, raw := range items {
		var item T
		err := json.Unmarshal(raw, &item)
		if _, isType := errors.AsType[*json.UnmarshalTypeError](err); isType {
			err = nil // a member of the wrong type counts as missing
		}
		if err != nil || jsonx.KindOf(raw) != jsonx.Object || !usable(&item) {
			diagnose("listing_malformed",
				fmt.Sprintf("%s: item %d was left out: it is malformed or has no name", method, i+1),
				"report this to the server's author")
			continue
		}
		out = append(out, item)
	}
	return out, diags, nil
}

// listOffers connects to the server and lists all pages of one kind, within the connect
// timeout; nil means the server does not declare the capability what.
func (s *Source) listOffers(ctx context.Context, what, key string) (*listing, error) {
	start := time.Now()
	sess, err := s.pool.live(ctx)
	if err != nil {
		return nil, err
	}
	s.status.update(func(i *Info) { i.ConnectMs = time.Since(start).Milliseconds() })
	if !sess.offers(what) {
		return nil, nil
	}
	within, stop := s.pool.deadline(ctx)
	defer stop()
	l, _, err := s.lists.relist(within, sess, key)
	if err != nil {
		return nil, err
	}
	s.lists.storeOffers(within, key, l.items)
	return &l, nil
}

// Reading is the server's response to reading a URI: one or more contents.
type Reading struct {
	Contents []registry.Content // of type resource
	Raw      json.RawMessage    // the list of contents as sent
}

// ReadResource connects to the server and reads a resource. progress may be nil.
// Errors: *NotOfferedError, *RefusedError, *ServerError, the cause of ctx.
func (s *Source) ReadResource(ctx context.Context, uri string, progress func(registry.Progress)) (Reading, error) {
	request := &request{
		method: "resources/read", name: uri,
		progress: progress, asked: ask.NewRequest(ctx, "resource "+text.Quote(uri)),
		params: map[string]string{"uri": uri},
	}
	raw, err := s.opts.exchange(ctx, request.method, request.params,
		func() (json.RawMessage, error) { return s.requests.fetch(ctx, request, "resources") })
	if err != nil {
		return Reading{}, err
	}
	r := Reading{Raw: jsonx.Get(raw, "contents")}
	items, ok := content.List(r.Raw)
	if !ok {
		return r, s.opts.errorf("resources/read", nil, "its answer has no list \"contents\"")
	}
	for i, item := range items {
		c := registry.Content{Type: registry.ContentResource}
		if !content.Resource(&c, item) {
			return r, s.opts.errorf("resources/read", nil, fmt.Sprintf("content %d is neither text nor base64", i+1))
		}
		r.Contents = append(r.Contents, c)
	}
	return r, nil
}

// Message is one message of a prompt.
type Message struct {
	Role    string           `json:"role"`    // user or assistant
	Content registry.Content `json:"content"` // unknown content has its JSON text
}

// Filled is a prompt with its arguments filled in.
type Filled struct {
	Description string
	Messages    []Message
	Raw         json.RawMessage // the list of messages as sent
}

// GetPrompt connects to the server and gets a prompt filled in with arguments.
// progress may be nil. Errors are those of ReadResource.
func (s *Source) GetPrompt(ctx context.Context, name string,
	arguments map[string]string, progress func(registry.Progress)) (Filled, error) {
	about := &mcp.GetPromptParams{Name: name, Arguments: arguments}
	if arguments == nil {
		arguments = map[string]string{} // many servers need the object, although it is optional
	}
	request := &request{
		method: "prompts/get", name: name, progress: progress, asked: ask.NewRequest(ctx, "prompt "+text.Quote(name)),
		params: map[string]any{"name": name, "arguments": arguments},
	}
	raw, err := s.opts.exchange(ctx, request.method, about, // recordings have no empty arguments
		func() (json.RawMessage, error) { return s.requests.fetch(ctx, request, "prompts") })
	if err != nil {
		return Filled{}, err
	}
	f := Filled{Raw: jsonx.Get(raw, "messages")}
	f.Description, _ = jsonx.Text(jsonx.Get(raw, "description"))
	items, ok := content.List(f.Raw)
	if !ok {
		return f, s.opts.errorf("prompts/get", nil, "its answer has no list \"messages\"")
	}
	for _, item := range items {
		role, _ := jsonx.Text(jsonx.Get(item, "role"))
		if role != "assistant" {
			role = "user" // clients refuse all others, such as system, and with it the prompt
		}
		c, _ := content.Block(jsonx.Get(item, "content"))
		f.Messages = append(f.Messages, Message{Role: role, Content: c})
	}
	return f, nil
}

// Complete connects to the server and requests completions for an argument of a
// prompt or of a template (completion/complete). Errors are those of
// ReadResource.
func (s *Source) Complete(ctx context.Context, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	if s.opts.Recorded != nil {
		return nil, &NotOfferedError{Server: s.opts.Server.Name, What: "completions"}
	}
	sent := *params
	sent.Meta = nil // it belongs to the client's request
	request := &request{method: "completion/complete", asked: ask.NewRequest(ctx, "completion"), params: &sent}
	raw, err := s.requests.fetch(ctx, request, "completions")
	if err != nil {
		return nil, err
	}
	var result mcp.CompleteResult
	if err := jsonx.Unmarshal(raw, &result); err != nil {
		return nil, s.opts.errorf(request.method, nil, "its answer is malformed: "+err.Error())
	}
	return &result, nil
}
