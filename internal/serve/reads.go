package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/current"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
	"github.com/toolreg/toolreg/internal/tracing"
)

// reads answers requests for prompts and resources.
type reads struct {
	offers *current.Offers
	states *question.Calls
	log    *slog.Logger
}

// notOffered returns the error for a request for a prompt or a resource that the caller is not
// offered. It logs the request, unless the reason is a failed server.
func notOffered(ctx context.Context, log *slog.Logger, v *offer.View, method string, err error) error {
	refused, _ := errors.AsType[*jsonrpc.Error](err)
	if refused != nil && refused.Code == jsonrpc.CodeInternalError {
		return err
	}
	log.Warn("request refused", "method", method, "caller", caller.Name(ctx), "reason", err.Error())
	if denied, ok := errors.AsType[*engine.OfferDenied](err); ok {
		v.Rules.Log(ctx, method, denied)
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: denied.Error()}
	}
	return err
}

type promptResult struct {
	ownResult
	Description string              `json:"description,omitempty"`
	Messages    []mcpclient.Message `json:"messages"`
}

// getPrompt fills in a prompt of v at its server.
func (r *reads) getPrompt(ctx context.Context, v *offer.View, req *mcp.GetPromptRequest) (mcp.Result, error) {
	is, err := v.Prompt(ctx, req.Params.Name)
	if err != nil {
		return nil, notOffered(ctx, r.log, v, "prompts/get", err)
	}
	tracing.Current(ctx).Target("gen_ai.prompt.name", is.Declared)
	arguments, err := json.Marshal(req.Params.Arguments)
	if err != nil {
		return nil, err
	}
	return r.reply(ctx, question.Turn{
		Method: "prompts/get", Name: is.Declared, Params: arguments,
		State: req.Params.RequestState, Answers: req.Params.InputResponses,
	}, func(ctx context.Context, v *offer.View) (any, error) {
		p, err := v.Prompt(ctx, is.Declared)
		if err != nil {
			return nil, notOffered(ctx, r.log, v, "prompts/get", err)
		}
		var filled mcpclient.Filled
		err = useOffer(ctx, v.Session, "prompts/get", p.Offer(),
			map[string]any{"name": p.Name, "arguments": req.Params.Arguments},
			func(ctx context.Context) (err error) {
				filled, err = p.Server.GetPrompt(ctx, p.Name, req.Params.Arguments, question.Progress(ctx))
				return err
			})
		messages := append([]mcpclient.Message{}, filled.Messages...) // not null
		for i, m := range messages {
			messages[i].Content = question.From(ctx).Readable([]registry.Content{m.Content})[0]
		}
		return &promptResult{Description: filled.Description, Messages: messages}, err
	})
}

// reply calls run to answer a request with what the client is offered, and passes questions that
// come up meanwhile to the client.
func (r *reads) reply(ctx context.Context, t question.Turn,
	run func(context.Context, *offer.View) (any, error)) (mcp.Result, error) {
	got, ask, err := r.states.Make(ctx, t, func(ctx context.Context) (any, error) {
		v, done := r.offers.Use(ctx)
		defer done()
		return run(ctx, v)
	})
	switch {
	case err != nil:
		return nil, refusal(err)
	case ask != nil:
		return ask, nil
	}
	result, _ := got.(mcp.Result)
	return result, nil
}

type readResult struct {
	ownResult
	mcp.Cacheable
	Contents []*registry.Contents `json:"contents"`
}

func (r *reads) readResource(ctx context.Context, v *offer.View, req *mcp.ReadResourceRequest) (mcp.Result, error) {
	name := req.Params.URI
	if _, err := v.Resource(ctx, name); err != nil {
		return nil, notOffered(ctx, r.log, v, "resources/read", err)
	}
	return r.reply(ctx, question.Turn{
		Method: "resources/read", Name: name, State: req.Params.RequestState, Answers: req.Params.InputResponses,
	}, func(ctx context.Context, v *offer.View) (any, error) {
		found, err := v.Resource(ctx, name)
		if err != nil {
			return nil, notOffered(ctx, r.log, v, "resources/read", err)
		}
		var reading mcpclient.Reading
		err = useOffer(ctx, v.Session, "resources/read", found.Offer(name), map[string]string{"uri": name},
			func(ctx context.Context) (err error) {
				reading, err = found.Server.ReadResource(ctx, name, question.Progress(ctx))
				return err
			})
		if refused, ok := errors.AsType[*mcpclient.RefusedError](err); ok && refused.Missing() {
			missing, _ := errors.AsType[*jsonrpc.Error](mcp.ResourceNotFoundError(name))
			missing.Message = cmp.Or(refused.Message, missing.Message)
			return nil, missing
		}
		if err != nil {
			return nil, err
		}
		return contentsOf(reading, name, found.MIMEType), nil
	})
}

// contentsOf converts what was read for the client. Contents without a URI or a type get those of
// the resource.
func contentsOf(reading mcpclient.Reading, uri, mimeType string) *readResult {
	out := &readResult{
		Cacheable: mcp.Cacheable{CacheScope: offer.CacheScope},
		Contents:  []*registry.Contents{}, // not null
	}
	for _, c := range reading.Contents {
		c.URI, c.MIMEType = cmp.Or(c.URI, uri), cmp.Or(c.MIMEType, mimeType)
		out.Contents = append(out.Contents, c.Contents())
	}
	return out
}

// complete completes an argument of a prompt or a template at its server.
func (r *reads) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	v, done := r.offers.Use(ctx)
	defer done()
	params := *req.Params
	none := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	ref := *params.Ref // which the SDK has found
	params.Ref = &ref
	var server *mcpclient.Source
	switch ref.Type {
	case "ref/prompt":
		p, err := v.Prompt(ctx, ref.Name)
		if err != nil {
			return nil, notOffered(ctx, r.log, v, "completion/complete", err)
		}
		server, ref.Name = p.Server, p.Name
	case "ref/resource":
		t, err := v.Template(ctx, ref.URI)
		switch {
		case err != nil:
			return nil, notOffered(ctx, r.log, v, "completion/complete", err)
		case !t.IsTemplate(): // a resource has no arguments
			return none, nil
		}
		server = t.Server
	default:
		return none, nil
	}
	result, err := server.Complete(ctx, &params)
	if _, ok := errors.AsType[*mcpclient.NotOfferedError](err); ok {
		return none, nil // to clients, all servers are this one, which supports completion
	}
	if err != nil {
		return nil, refusal(err)
	}
	return result, nil
}

// useOffer calls do, the request of a method for a prompt or a resource, if the rules or the
// client's user allow it.
func useOffer(ctx context.Context, session *engine.Session, method string, about engine.Offer, params any,
	do func(context.Context) error) error {
	t := about.Tool(method)
	if err := question.From(ctx).Concerns(t, t.Source); err != nil {
		return err
	}
	return session.Calls.Use(ctx, t, about, params, do)
}

// refusal converts an error for the client. It keeps the code of a server's error.
func refusal(err error) error {
	refused, isRefused := errors.AsType[*mcpclient.RefusedError](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case isRefused:
		return &jsonrpc.Error{Code: cmp.Or(refused.Code, jsonrpc.CodeInternalError), Message: refused.Message}
	case errors.Is(err, registry.ErrDenied), errors.Is(err, registry.ErrNeedsConfirmation):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: explain(err)}
	}
	if e := protocolError(err); e != nil {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
