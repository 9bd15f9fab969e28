package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// offers are the prompts and resources of servers.
type offers struct {
	prompts   map[string]*prompt // by the server's name, if it is free, and by server__name
	resources map[string]*resource
	templates map[string]*resource
	listed    map[*mcpclient.Source]listed
}

// listed is what one server offers besides tools.
type listed struct {
	prompts   []mcpclient.Prompt
	resources []mcpclient.Resource
	templates []mcpclient.ResourceTemplate
}

// prompt is a prompt of a server.
type prompt struct {
	server   *mcpclient.Source
	declared string
	is       mcpclient.Prompt
}

// resource is a resource of a server, or a template.
type resource struct {
	server *mcpclient.Source
	is     *mcp.Resource
	like   *mcp.ResourceTemplate
}

// loadOffers lists what the connected servers offer besides tools. Servers in earlier are
// asked only if they are also in again, and keep what they had if they fail. A server that
// fails does not affect the others.
func (o *Options) loadOffers(ctx context.Context, from *engine.Servers, earlier map[*mcpclient.Source]listed, again []*mcpclient.Source) offers {
	all := offers{prompts: map[string]*prompt{}, resources: map[string]*resource{}, templates: map[string]*resource{}, listed: map[*mcpclient.Source]listed{}}
	servers, _, err := from.Named()
	if err != nil {
		return all
	}
	for _, server := range servers {
		info := server.Info()
		l, known := earlier[server]
		ask := info.State == mcpclient.StateConnected && (!known || slices.Contains(again, server))
		if o.Servers != nil && !o.Servers(info.Name) || !known && !ask {
			continue
		}
		if ask {
			l.ask(ctx, server, o.noteFailure)
		}
		all.listed[server] = l
		for _, p := range l.prompts {
			all.addPrompt(server, p)
		}
		for _, r := range l.resources {
			addResource(all.resources, r.URI, &resource{server: server, is: convert[mcp.Resource](r)}, o.Warn)
		}
		for _, t := range l.templates {
			addResource(all.templates, t.URITemplate, &resource{server: server, like: convert[mcp.ResourceTemplate](t)}, o.Warn)
		}
	}
	return all
}

// ask asks a server for its prompts and resources. Lists that it fails to return stay as
// they were.
func (l *listed) ask(ctx context.Context, server *mcpclient.Source, note func(*mcpclient.Source, error)) {
	prompts, _, err := server.Prompts(ctx)
	if err == nil {
		l.prompts = prompts
	}
	note(server, err)
	resources, templates, _, err := server.Resources(ctx)
	if err == nil {
		l.resources, l.templates = resources, templates
	}
	note(server, err)
}

// noteFailure warns about a server's prompts or resources that cannot be offered.
func (o *Options) noteFailure(server *mcpclient.Source, err error) {
	if err != nil {
		o.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "offers_unread", Source: server.Name(), Message: err.Error()})
	}
}

// addPrompt adds a prompt under server__name, and also under its own name if that is
// free.
func (o *offers) addPrompt(server *mcpclient.Source, is mcpclient.Prompt) {
	p := &prompt{server: server, is: is, declared: is.Name}
	qualified := is.Server + "__" + is.Name
	if _, taken := o.prompts[is.Name]; taken {
		p.declared = qualified
	} else {
		o.prompts[is.Name] = p
	}
	if _, taken := o.prompts[qualified]; !taken {
		o.prompts[qualified] = p
	}
}

// addResource adds a resource, unless an earlier server has one with its URI.
func addResource(to map[string]*resource, uri string, r *resource, warn func(registry.Diagnostic)) {
	if first, taken := to[uri]; taken {
		warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "resource_taken", Source: r.server.Name(),
			Message: fmt.Sprintf("resource %q is offered from %s", uri, first.server.Name())})
		return
	}
	if r.is != nil || r.like != nil {
		to[uri] = r
	}
}

// convert converts what a server listed to the SDK's type. It returns nil if that is not
// possible.
func convert[T any](from any) *T {
	data, err := json.Marshal(from)
	if err != nil {
		return nil
	}
	var to T
	if json.Unmarshal(data, &to) != nil {
		return nil
	}
	return &to
}

// changeOffers registers changed prompts and resources with the SDK, which notifies
// clients of each registration. The SDK panics on invalid URIs.
func (s *Server) changeOffers(old, o *offers) {
	before, now := old.prompts, o.prompts // by the names under which they are listed
	s.sdk.RemovePrompts(gone(before, now)...)
	s.sdk.RemoveResources(gone(old.resources, o.resources)...)
	s.sdk.RemoveResourceTemplates(gone(old.templates, o.templates)...)
	for name, p := range changed(before, now, seenOfPrompt) {
		if is := convert[mcp.Prompt](p.is); is != nil {
			is.Name = name
			s.sdk.AddPrompt(is, s.getPrompt)
		}
	}
	add := func(uri string, from *resource, add func()) {
		defer func() {
			if p := recover(); p != nil {
				s.opts.noteFailure(from.server, fmt.Errorf("resource %q is left out: %v", uri, p))
			}
		}()
		add()
	}
	for uri, r := range changed(old.resources, o.resources, seenOfResource) {
		add(uri, r, func() { s.sdk.AddResource(r.is, s.readResource) })
	}
	for uri, r := range changed(old.templates, o.templates, seenOfResource) {
		add(uri, r, func() { s.sdk.AddResourceTemplate(r.like, s.readResourceLike(uri)) })
	}
}

// declared returns the prompts by the names under which they are listed.
func declared(prompts map[string]*prompt) map[string]*prompt {
	out := map[string]*prompt{}
	for name, p := range prompts {
		if name == p.declared {
			out[name] = p
		}
	}
	return out
}

// changed returns the entries that are new or differ for clients.
func changed[T any](old, now map[string]T, seen func(T) any) map[string]T {
	out := maps.Clone(now)
	maps.DeleteFunc(out, func(key string, v T) bool {
		before, ok := old[key]
		return ok && reflect.DeepEqual(seen(before), seen(v))
	})
	return out
}

func seenOfPrompt(p *prompt) any { return p.is }

func seenOfResource(r *resource) any { return [...]any{r.is, r.like} }

// progressOf returns the function that passes progress of a request on to its client; nil
// if it is not wanted. If the client may be asked a question first, the request with its
// answer may ask for progress too.
func progressOf(ctx context.Context) func(registry.Progress) {
	c := clientFrom(ctx)
	if c == nil || c.progress == nil && !c.continues() {
		return nil
	}
	return func(p registry.Progress) {
		to := c.carrier()
		if to.progress == nil {
			return
		}
		to.out.post(func() {
			_ = to.session.NotifyProgress(to.request, &mcp.ProgressNotificationParams{ProgressToken: to.progress, Progress: p.Done, Total: p.Total, Message: p.Message})
		})
	}
}

// getPrompt has the server fill in a prompt.
func (s *Server) getPrompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	arguments, err := json.Marshal(req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	v, ask, err := s.states.make(ctx, turn{"prompts/get", req.Params.Name, arguments, req.Params.GetProgressToken(), req.Params.RequestState, req.Params.InputResponses},
		func(ctx context.Context) (any, error) {
			o, done := s.use(ctx)
			defer done()
			p := o.prompts[req.Params.Name]
			if p == nil {
				return nil, errReplaced
			}
			if err := s.permit(ctx, o, "prompts/get", offerOf(p.server, p.is.Name, p.declared)); err != nil {
				return nil, err
			}
			if err := clientFrom(ctx).concerns(nil, p.server.Name()); err != nil {
				return nil, err
			}
			return p.server.GetPrompt(ctx, p.is.Name, req.Params.Arguments, progressOf(ctx))
		})
	switch {
	case err != nil:
		return nil, refusal(err)
	case ask != nil:
		return &mcp.GetPromptResult{InputRequests: ask.requests, RequestState: ask.state}, nil
	}
	filled, _ := v.(mcpclient.Filled)
	out := &mcp.GetPromptResult{Description: filled.Description}
	if err := json.Unmarshal(filled.Raw, &out.Messages); err != nil {
		return nil, refusal(fmt.Errorf("the server's messages cannot be read: %w", err))
	}
	return out, nil
}

// errReplaced reports that a requested prompt or resource no longer exists after a change
// of the settings.
var errReplaced = errors.New("no longer offered, because the settings have changed")

// readResource reads a resource of a server.
func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return s.read(ctx, req, func(o *offers) *resource { return o.resources[req.Params.URI] })
}

// readResourceLike reads resources of a template.
func (s *Server) readResourceLike(template string) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return s.read(ctx, req, func(o *offers) *resource { return o.templates[template] })
	}
}

func (s *Server) read(ctx context.Context, req *mcp.ReadResourceRequest, find func(*offers) *resource) (*mcp.ReadResourceResult, error) {
	v, ask, err := s.states.make(ctx, turn{"resources/read", req.Params.URI, nil, req.Params.GetProgressToken(), req.Params.RequestState, req.Params.InputResponses},
		func(ctx context.Context) (any, error) {
			o, done := s.use(ctx)
			defer done()
			r := find(&o.offers)
			if r == nil { // since the request began, or it is another client's
				return nil, mcp.ResourceNotFoundError(req.Params.URI)
			}
			if err := s.permit(ctx, o, "resources/read", offerOf(r.server, "", req.Params.URI)); err != nil {
				return nil, err
			}
			if err := clientFrom(ctx).concerns(nil, r.server.Name()); err != nil {
				return nil, err
			}
			return r.server.ReadResource(ctx, req.Params.URI, progressOf(ctx))
		})
	refused, isRefused := errors.AsType[*mcpclient.RefusedError](err)
	switch {
	case isRefused && refused.Missing():
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	case err != nil:
		return nil, refusal(err)
	case ask != nil:
		return &mcp.ReadResourceResult{InputRequests: ask.requests, RequestState: ask.state}, nil
	}
	reading, _ := v.(mcpclient.Reading)
	out := &mcp.ReadResourceResult{}
	if err := json.Unmarshal(reading.Raw, &out.Contents); err != nil {
		return nil, refusal(fmt.Errorf("the server's contents cannot be read: %w", err))
	}
	return out, nil
}

// refusal returns an error for a client. The code of a server's error is kept.
func refusal(err error) error {
	refused, isRefused := errors.AsType[*mcpclient.RefusedError](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case isRefused:
		return &jsonrpc.Error{Code: cmp.Or(refused.Code, jsonrpc.CodeInternalError), Message: refused.Message}
	}
	if e := protocolError(err); e != nil {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// complete has the server complete an argument of a prompt or a template.
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	o, done := s.use(ctx)
	defer done()
	params := *req.Params
	none := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	if params.Ref == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "ref is missing"}
	}
	ref := *params.Ref
	params.Ref = &ref
	var server *mcpclient.Source
	var about engine.Offer
	if p := o.prompts[ref.Name]; ref.Type == "ref/prompt" && p != nil {
		server, ref.Name, about = p.server, p.is.Name, offerOf(p.server, p.is.Name, p.declared)
	} else if r := o.templates[ref.URI]; ref.Type == "ref/resource" && r != nil {
		server, about = r.server, offerOf(r.server, "", ref.URI)
	} else if of := o.resourceServer(ref.URI); ref.Type == "ref/resource" && of != nil { // it has no arguments
		return none, s.permit(ctx, o, "completion/complete", offerOf(of, "", ref.URI))
	} else {
		return none, nil
	}
	if err := s.permit(ctx, o, "completion/complete", about); err != nil {
		return nil, err
	}
	result, err := server.Complete(ctx, &params)
	if _, ok := errors.AsType[*mcpclient.NotOfferedError](err); ok { // to clients this is one server, which supports completion
		return none, nil
	}
	if err != nil {
		return nil, refusal(err)
	}
	return result, nil
}
