package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
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
	ctx, o, err := s.openOffers(ctx, "prompts")
	if err != nil || !o.offered {
		return nil, o.diags, err
	}
	defer o.stop()
	list := offered(ctx, o, listPrompts, func(p *Prompt) bool {
		p.Server = s.opts.Server.Name
		return p.Name != ""
	})
	s.status.update(func(i *Info) { i.Prompts = len(list) })
	return list, o.diags, o.err
}

// Resources connects to the server and lists its resources and their templates,
// like Prompts. A server without templates is not an error.
func (s *Source) Resources(ctx context.Context) ([]Resource, []ResourceTemplate, []registry.Diagnostic, error) {
	ctx, o, err := s.openOffers(ctx, "resources")
	if err != nil || !o.offered {
		return nil, nil, o.diags, err
	}
	defer o.stop()
	list := offered(ctx, o, listResources, func(r *Resource) bool {
		r.Server = s.opts.Server.Name
		return r.URI != ""
	})
	s.status.update(func(i *Info) { i.Resources = len(list) })
	if o.err != nil {
		return nil, nil, o.diags, o.err
	}
	templates := offered(ctx, o, listTemplates, func(t *ResourceTemplate) bool {
		t.Server = s.opts.Server.Name
		return t.URITemplate != ""
	})
	return list, templates, o.diags, o.err
}

// offers is the state of listing what a server offers besides tools.
type offers struct {
	stop    func()
	source  *Source
	sess    *session
	offered bool // the server declares the capability
	diags   []registry.Diagnostic
	err     error
}

// openOffers connects to the server and returns a context for listing, limited
// by the connect timeout. what is the key of a capability.
func (s *Source) openOffers(ctx context.Context, what string) (context.Context, *offers, error) {
	o := &offers{source: s, stop: func() {}}
	start := time.Now()
	sess, err := s.pool.live(ctx)
	if err != nil {
		return ctx, o, err
	}
	o.sess = sess
	s.status.update(func(i *Info) { i.ConnectMs = time.Since(start).Milliseconds() })
	if !sess.offers(what) {
		o.diags = []registry.Diagnostic{s.opts.diagnose(registry.SeverityWarning, "not_offered", "",
			fmt.Sprintf("server %q offers no %s", s.opts.Server.Name, what), "")}
		return ctx, o, nil
	}
	o.offered = true
	ctx, o.stop = s.pool.deadline(ctx)
	return ctx, o, nil
}

// offered lists all pages of one kind. On failure it sets o.err.
func offered[T any](ctx context.Context, o *offers, key string, usable func(*T) bool) []T {
	s := o.source
	l, last, err := s.lists.relist(ctx, o.sess, key)
	o.sess = last
	if err != nil {
		o.err = err
		return nil
	}
	if l.cut != "" {
		o.diags = append(o.diags, s.opts.diagnose(registry.SeverityWarning, "listing_cut", "", listMethod(key)+": "+l.cut, ""))
	}
	s.lists.storeOffers(ctx, key, l.items)
	out := make([]T, 0, len(l.items))
	for i, raw := range l.items {
		var item T
		if err := json.Unmarshal(raw, &item); err != nil || jsonx.KindOf(raw) != jsonx.Object || !usable(&item) {
			o.diags = append(o.diags, s.opts.diagnose(registry.SeverityWarning, "listing_malformed", "",
				fmt.Sprintf("%s: item %d was left out: it is malformed or has no name", listMethod(key), i+1), "report this to the server's author"))
			continue
		}
		out = append(out, item)
	}
	return out
}

// Complete connects to the server and requests completions for an argument of a
// prompt or of a template (completion/complete). Errors are those of
// ReadResource.
func (s *Source) Complete(ctx context.Context, params *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	sent := *params
	sent.Meta = nil // it belongs to the client's request
	request := &request{method: "completion/complete", asked: ask.NewRequest(ctx, "completion"), params: &sent}
	raw, err := s.requests.fetch(ctx, request, "completions")
	if err != nil {
		return nil, err
	}
	var result mcp.CompleteResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, s.opts.malformed(request.method, "its answer is malformed: "+err.Error())
	}
	return &result, nil
}
