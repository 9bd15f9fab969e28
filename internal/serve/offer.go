package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
)

// offer holds what clients are offered: the tools, prompts and resources of one session.
// When the settings change, a new offer replaces it, and its session is closed after its
// last request.
type offer struct {
	*held
	registry *registry.Registry
	all      *view              // what is offered to clients without a profile
	views    views              // of profiles
	rules    *engine.OfferRules // for prompts and resources
	failed   []registry.Source  // servers and APIs that could not list their tools
	isFirst  bool               // neither an offer nor an error came before
	offers
}

// held is a session and the number of requests that use it. Server.mu guards users and
// replaced.
type held struct {
	session  *engine.Session
	users    int
	replaced bool
}

// change updates the SDK's server of a profile from an old offer, which may be nil, to a new one.
// The SDK orders and pages lists and notifies clients. The tools that it lists are
// replaced by the declarations (see listedTools).
func (s *Server) change(server *mcp.Server, profile string, old, o *offer) {
	before, now := &view{}, o.view(profile)
	if old == nil {
		old = &offer{}
	} else {
		before = old.view(profile)
	}
	server.RemoveTools(gone(before.tools, now.tools)...)
	for name, t := range now.tools {
		if was, ok := before.tools[name]; !ok || !bytes.Equal(was.raw, t.raw) {
			server.AddTool(t.sdk, s.callTool)
		}
	}
	s.changeOffers(server, &old.offers, &o.offers)
}

// gone returns the keys that are in old but not in now.
func gone[T any](old, now map[string]T) []string {
	var out []string
	for key := range old {
		if _, ok := now[key]; !ok {
			out = append(out, key)
		}
	}
	return out
}

// resolve replaces the name in a request by the offered one: server__tool and aliases
// work as in `toolreg call`. An unknown tool is a protocol error.
func (o *offer) resolve(ctx context.Context, v *view, req mcp.Request) error {
	switch req := req.(type) {
	case *mcp.CallToolRequest:
		return o.resolveTool(ctx, v, req.Params)
	case *mcp.GetPromptRequest:
		if p, ok := o.prompts[req.Params.Name]; ok {
			req.Params.Name = p.declared
		}
	case *mcp.CompleteRequest:
		if ref := req.Params.Ref; ref != nil {
			if p, ok := o.prompts[ref.Name]; ok {
				ref.Name = p.declared
			}
		}
	}
	return nil
}

func (o *offer) resolveTool(ctx context.Context, v *view, params *mcp.CallToolParamsRaw) error {
	name := params.Name
	if v.has(name) {
		return nil
	}
	if _, ok := o.denied(ctx, v, name); ok {
		return nil
	}
	t, err := o.registry.Lookup(name)
	if h := hiddenBy(err); h != nil && (h.Kept || h.Now != "") {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: exec.Explain(err)}
	}
	if err == nil {
		for declared, offered := range v.tools {
			if offered.Tool == t {
				params.Name = declared
				return nil
			}
		}
		if slices.Contains(v.faulty, t) {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the tool %q cannot be used: its schema is not valid", name)}
		}
	}
	near := registry.Near(name, slices.Sorted(maps.Keys(v.tools)))
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: o.unknownTool(name, len(v.tools), near)}
}

// denied returns the tool with a name if it is not offered because rules deny every call of
// it. Such a call is made nevertheless, so that it is answered with the reason and logged.
func (o *offer) denied(ctx context.Context, v *view, name string) (engine.Found, bool) {
	t, err := o.registry.Lookup(name)
	if err != nil || !v.profile.shows(t) {
		return engine.Found{}, false
	}
	if _, hidden, err := o.session.Offers.Split(ctx, o.registry, []*registry.Tool{t}); err != nil || len(hidden) == 0 {
		return engine.Found{}, false
	}
	return engine.FoundIn(o.registry, []*registry.Tool{t})[0], true
}

// hiddenBy returns the hidden tool that err, of a lookup, is about, or nil.
func hiddenBy(err error) *registry.Hidden {
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok {
		return missing.Hidden
	}
	return nil
}

func (o *offer) unknownTool(name string, offered int, near []string) string {
	message := fmt.Sprintf("unknown tool %q (%d tools are offered)", name, offered)
	if len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	if len(o.failed) > 0 {
		failed := make([]string, len(o.failed))
		for i, server := range o.failed {
			failed[i], _ = registry.ServerOf(server.Name())
		}
		message += "; servers that could not list their tools: " + strings.Join(failed, ", ")
	}
	return message
}

// listedTools is a page of tools/list whose tools are written as they were
// declared, because the SDK's type does not have all their fields.
type listedTools struct {
	*mcp.ListToolsResult
	view *view
}

// declarations replaces the tools in a page of tools/list by their
// declarations.
func (v *view) declarations(page mcp.Result) mcp.Result {
	if list, ok := page.(*mcp.ListToolsResult); ok && list != nil {
		return listedTools{list, v}
	}
	return page
}

// MarshalJSON writes the page.
func (l listedTools) MarshalJSON() ([]byte, error) {
	page := *l.ListToolsResult
	page.Tools = []*mcp.Tool{}
	head, err := json.Marshal(&page)
	if err != nil {
		return nil, err
	}
	const none = `"tools":[]`
	before, after, found := strings.Cut(string(head), none)
	if !found {
		return nil, errors.New("the SDK's page contains no tools")
	}
	size := len(head)
	for _, t := range l.Tools {
		size += len(l.view.raw(t.Name)) + 1
	}
	out := append(make([]byte, 0, size), before+`"tools":[`...)
	for i, t := range l.Tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, l.view.raw(t.Name)...)
	}
	return append(append(out, ']'), after...), nil
}
