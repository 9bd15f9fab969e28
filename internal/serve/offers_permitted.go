package serve

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/policy"
)

// offerOf describes a server's prompt, with the name under which it is listed, or its resource
// (prompt is ""), with its URI, for the policy.
func offerOf(server *mcpclient.Source, prompt, name string) policy.Offer {
	o := policy.Offer{Server: server.Info().Name, Prompt: prompt}
	if prompt == "" {
		o.URI = name
	} else {
		o.Name = name
	}
	return o
}

// permit returns the error with which to answer a request for a prompt or a resource that the
// policy denies to the caller; nil if it allows it. The refusal is logged.
func (s *Server) permit(ctx context.Context, o *offer, method string, about policy.Offer) error {
	v := o.rules.DecideOffer(ctx, about)
	if v.Decision != policy.Deny {
		return nil
	}
	what, name := "resource", about.URI
	if about.Prompt != "" {
		what, name = "prompt", about.Name
	}
	s.opts.Log.Warn("request refused", "method", method, what, name, "caller", caller.Name(ctx), "reason", v.Reason, "rule", v.Origin)
	o.session.Calls.DeniedOffer(ctx, method, about, v)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s %q is not allowed: %s (%s)", what, name, v.Reason, v.Origin)}
}

// leaveOutDenied removes from a page of a list the prompts and resources that the policy denies
// to the caller.
func (o *offer) leaveOutDenied(ctx context.Context, page mcp.Result) {
	denied := func(about policy.Offer) bool { return o.rules.DecideOffer(ctx, about).Decision == policy.Deny }
	switch page := page.(type) {
	case *mcp.ListPromptsResult:
		if page != nil {
			page.Prompts = slices.DeleteFunc(page.Prompts, func(is *mcp.Prompt) bool {
				p := o.prompts[is.Name]
				return p == nil || denied(offerOf(p.server, p.is.Name, is.Name))
			})
		}
	case *mcp.ListResourcesResult:
		if page != nil {
			page.Resources = slices.DeleteFunc(page.Resources, func(is *mcp.Resource) bool {
				r := o.resources[is.URI]
				return r == nil || denied(offerOf(r.server, "", is.URI))
			})
		}
	case *mcp.ListResourceTemplatesResult:
		if page != nil {
			page.ResourceTemplates = slices.DeleteFunc(page.ResourceTemplates, func(is *mcp.ResourceTemplate) bool {
				r := o.templates[is.URITemplate]
				return r == nil || denied(offerOf(r.server, "", is.URITemplate))
			})
		}
	}
}

// dropDeniedUpdates is the middleware that drops notifications about resources that the policy
// has come to deny to the client that subscribed.
func (s *Server) dropDeniedUpdates(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			session, _ := req.GetSession().(*mcp.ServerSession)
			o, done := s.use()
			defer done()
			server, who := o.resourceServer(p.URI), s.subscriptions.subscriber(p.URI, session)
			if server != nil && who != nil && o.rules.DecideOffer(caller.With(ctx, who), offerOf(server, "", p.URI)).Decision == policy.Deny {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}
