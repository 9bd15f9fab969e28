package serve

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/transport"
)

// permitCalls returns why a message with calls of tools is rejected (serve.oauth.scopes); nil if
// it is permitted. Calls within a call, such as those of scripts, are checked when they are made,
// see [caller.Caller].
func (h *HTTP) permitCalls(in *transport.Inbound) *auth.Rejection {
	o := h.opts.OAuth
	if o == nil || len(o.Settings().Scopes) == 0 {
		return nil
	}
	for _, message := range in.Messages() {
		if method, _ := jsonx.Text(jsonx.Get(message, "method")); method != "tools/call" {
			continue
		}
		params := jsonx.Get(message, "params")
		name, _ := jsonx.Text(jsonx.Get(params, "name"))
		spellings := h.server.spellings(in.R.Context(), in.From, name, jsonx.Get(params, "arguments"))
		if no := o.Permit(in.From, spellings...); no != nil {
			return no
		}
	}
	return nil
}

// spellings returns the names of the tool that a call with this name makes, and of the tool that
// it reaches through call_tool.
func (s *Server) spellings(ctx context.Context, from auth.Identity, name string, arguments json.RawMessage) []string {
	out := []string{name}
	ctx = caller.With(ctx, &caller.Caller{Name: from.Name, Token: from.Name})
	if _, err := s.offered(ctx); err != nil { // the call fails too
		return out
	}
	o, done := s.use(ctx)
	defer done()
	if t := s.view(o, from.Profile).withApps().find(name); t != nil {
		out = append(out, t.Tool.Called()...)
		if inner := t.Inner(arguments); inner != "" {
			out = append(out, inner)
		}
	}
	for _, one := range slices.Clone(out) {
		if t, err := o.registry.Lookup(one); err == nil {
			out = append(out, t.Called()...)
		}
	}
	return out
}
