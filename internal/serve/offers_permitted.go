package serve

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
)

// offerOf describes a server's prompt, with the name under which it is listed, or its resource
// (prompt is ""), with its URI, for the policy.
func offerOf(server *mcpclient.Source, prompt, name string) engine.Offer {
	o := engine.Offer{Server: server.Info().Name, Prompt: prompt}
	if prompt == "" {
		o.URI = name
	} else {
		o.Name = name
	}
	return o
}

// permit returns the error with which to answer a request for a prompt or a resource that the
// policy denies to the caller; nil if it allows it. The refusal is logged.
func (s *Server) permit(ctx context.Context, o *offer, method string, about engine.Offer) error {
	denied := o.rules.Check(ctx, about)
	if v := s.view(o, caller.Profile(ctx)); denied == nil && !v.profile.showsServer(about.Server) {
		denied = &engine.OfferDenied{Offer: about, Reason: "it is not in the profile " + v.profile.Name, Origin: "serve.profiles"}
	}
	if denied == nil {
		return nil
	}
	s.opts.Log.Warn("request refused", "method", method, "caller", caller.Name(ctx), "reason", denied.Error())
	o.rules.Log(ctx, method, denied)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: denied.Error()}
}

// leaveOutDenied removes from a page of a list the prompts and resources that the policy denies
// to the caller, and those of other clients.
func (o *offer) leaveOutDenied(ctx context.Context, v *view, page mcp.Result) {
	denied := func(about engine.Offer) bool {
		return !v.profile.showsServer(about.Server) || o.rules.Check(ctx, about) != nil
	}
	switch page := page.(type) {
	case *mcp.ListPromptsResult:
		if page != nil {
			page.Prompts = slices.DeleteFunc(page.Prompts, func(is *mcp.Prompt) bool {
				p := o.prompts[is.Name]
				return p == nil || denied(offerOf(p.server, p.is.Name, is.Name))
			})
			for i, is := range page.Prompts {
				if own := convert[mcp.Prompt](o.prompts[is.Name].is); o.client != "" && own != nil {
					own.Name = is.Name
					page.Prompts[i] = own
				}
			}
		}
	case *mcp.ListResourcesResult:
		if page != nil {
			page.Resources = slices.DeleteFunc(page.Resources, func(is *mcp.Resource) bool {
				r := o.resources[is.URI]
				return r == nil || denied(offerOf(r.server, "", is.URI))
			})
			for i, is := range page.Resources {
				page.Resources[i] = o.resources[is.URI].is
			}
		}
	case *mcp.ListResourceTemplatesResult:
		if page != nil {
			page.ResourceTemplates = slices.DeleteFunc(page.ResourceTemplates, func(is *mcp.ResourceTemplate) bool {
				r := o.templates[is.URITemplate]
				return r == nil || denied(offerOf(r.server, "", is.URITemplate))
			})
			for i, is := range page.ResourceTemplates {
				page.ResourceTemplates[i] = o.templates[is.URITemplate].like
			}
		}
	}
}

// mayHear reports whether a session is to be told of a change of a server's resource.
func (s *Server) mayHear(ctx context.Context, server *mcpclient.Source, uri string, session *mcp.ServerSession) bool {
	for _, o := range s.offers() {
		if o.resourceServer(uri) != server {
			continue
		}
		if who := s.subscriptions.subscriber(subscribed{uri, o.clientOf(server)}, session); who != nil {
			return o.rules.Check(caller.With(ctx, who), offerOf(server, "", uri)) == nil
		}
	}
	return false
}

// dropDeniedUpdates is the middleware that drops notifications about resources that the policy
// has come to deny to the client that subscribed.
func (s *Server) dropDeniedUpdates(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if p, ok := req.GetParams().(*mcp.ResourceUpdatedNotificationParams); ok {
			session, _ := req.GetSession().(*mcp.ServerSession)
			if server := s.reporting.Load(); server != nil && !s.mayHear(ctx, server, p.URI, session) {
				return nil, nil
			}
		}
		return next(ctx, method, req)
	}
}
