package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// offer holds what clients are offered: the tools, prompts and resources of one session.
// When the settings change, a new offer replaces it, and its session is closed after its
// last request.
type offer struct {
	*held
	registry *registry.Registry
	tools    map[string]engine.Found    // by the name as declared
	raw      map[string]json.RawMessage // declarations, by the same name
	declared []*mcp.Tool
	faulty   []*registry.Tool   // those that cannot be declared
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

// newOffer declares tools in the format mcp, with their names in the whole registry.
func newOffer(reg *registry.Registry, tools []engine.Found, warn func(registry.Diagnostic)) (*offer, error) {
	format, err := provider.Lookup("mcp")
	if err != nil {
		return nil, err
	}
	byName := map[string]engine.Found{}
	defs := make([]registry.Definition, len(tools))
	for i, f := range tools {
		defs[i] = engine.Definition(reg, f.Tool)
		byName[defs[i].Name] = f
	}
	out, diags := format.Encode(defs, provider.Options{Registered: engine.Names(reg)})
	for _, d := range diags {
		if d.Severity != registry.SeverityInfo {
			warn(d)
		}
	}
	o := &offer{registry: reg, tools: map[string]engine.Found{}, raw: map[string]json.RawMessage{}}
	for _, d := range out.Declarations {
		o.tools[d.Name], o.raw[d.Name] = byName[d.Tool], d.Data
		o.declared = append(o.declared, &mcp.Tool{Name: d.Name, InputSchema: headerSchema(d.Data)})
		delete(byName, d.Tool)
	}
	for _, f := range byName {
		o.faulty = append(o.faulty, f.Tool)
	}
	return o, nil
}

// change updates the SDK's server from an old offer, which may be nil, to a new one.
// The SDK orders and pages lists and notifies clients. The tools that it lists are
// replaced by the declarations (see listedTools).
func (s *Server) change(server *mcp.Server, old, o *offer) {
	if old == nil {
		old = &offer{}
	}
	server.RemoveTools(gone(old.tools, o.tools)...)
	for _, t := range o.declared {
		if !bytes.Equal(old.raw[t.Name], o.raw[t.Name]) {
			server.AddTool(t, s.callTool)
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
func (o *offer) resolve(ctx context.Context, req mcp.Request) error {
	switch req := req.(type) {
	case *mcp.CallToolRequest:
		return o.resolveTool(ctx, req.Params)
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

func (o *offer) resolveTool(ctx context.Context, params *mcp.CallToolParamsRaw) error {
	name := params.Name
	if o.has(name) {
		return nil
	}
	if _, ok := o.denied(ctx, name); ok {
		return nil
	}
	t, err := o.registry.Lookup(name)
	if h := hiddenBy(err); h != nil && (h.Kept || h.Now != "") {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: exec.Explain(err)}
	}
	if err == nil {
		for declared, offered := range o.tools {
			if offered.Tool == t {
				params.Name = declared
				return nil
			}
		}
		if slices.Contains(o.faulty, t) {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("the tool %q cannot be used: its schema is not valid", name)}
		}
	}
	names := make([]string, 0, len(o.tools))
	for _, t := range o.declared {
		names = append(names, t.Name)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: o.unknownTool(name, registry.Near(name, names))}
}

// has reports whether a tool is offered under a name.
func (o *offer) has(name string) bool {
	_, ok := o.tools[name]
	return ok
}

// denied returns the tool with a name if it is not offered because rules deny every call of
// it. Such a call is made nevertheless, so that it is answered with the reason and logged.
func (o *offer) denied(ctx context.Context, name string) (engine.Found, bool) {
	t, err := o.registry.Lookup(name)
	if err != nil {
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

func (o *offer) unknownTool(name string, near []string) string {
	message := fmt.Sprintf("unknown tool %q (%d tools are offered)", name, len(o.declared))
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
	raw map[string]json.RawMessage
}

// declarations replaces the tools in a page of tools/list by their
// declarations.
func (o *offer) declarations(page mcp.Result) mcp.Result {
	if list, ok := page.(*mcp.ListToolsResult); ok && list != nil {
		return listedTools{list, o.raw}
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
		size += len(l.raw[t.Name]) + 1
	}
	out := append(make([]byte, 0, size), before+`"tools":[`...)
	for i, t := range l.Tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, l.raw[t.Name]...)
	}
	return append(append(out, ']'), after...), nil
}
