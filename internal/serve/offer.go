package serve

import (
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
	"github.com/toolreg/toolreg/internal/registry"
)

// offer holds what clients are offered: the tools, prompts and resources of one session.
// When the settings change, a new offer replaces it, and its session is closed after its
// last request.
type offer struct {
	*held
	client   string // that it is made for, because some servers are reached with its logins; "": for all
	servers  *engine.Servers
	registry *registry.Registry
	all      *view                   // what is offered to clients without a profile
	views    views                   // of profiles
	rules    *engine.OfferRules      // for prompts and resources
	failed   []registry.Source       // servers and APIs that could not list their tools
	isFirst  bool                    // neither an offer nor an error came before
	clients  map[string]*clientOffer // those made for one client; Server.mu guards it
	logins   []*loginTool
	// instructions are what the servers say to models.
	instructions []engine.Instructions
	offers
}

// held is a session and the number of requests that use it. Server.mu guards users and
// replaced.
type held struct {
	session  *engine.Session
	users    int
	replaced bool
}

// resolveTool replaces the name in a call by the offered one: server__tool and aliases work as in
// `toolreg call`. An unknown tool is a protocol error.
func (v *view) resolveTool(ctx context.Context, params *mcp.CallToolParamsRaw) error {
	name := params.Name
	if v.find(name) != nil {
		return nil
	}
	if _, ok := v.denied(ctx, name); ok {
		return nil
	}
	t, err := v.registry.Lookup(name)
	err = engine.ScopeError(v.profile.context(ctx), v.registry, name, err)
	if h := hiddenBy(err); h != nil && (h.Kept || h.Now != "") {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: exec.Explain(err)}
	}
	if err == nil {
		for _, offered := range v.tools {
			if offered.Tool == t {
				params.Name = offered.sdk.Name
				return nil
			}
		}
		if slices.Contains(v.faulty, t) {
			return &jsonrpc.Error{
				Code:    jsonrpc.CodeInvalidParams,
				Message: fmt.Sprintf("the tool %q cannot be used: its schema is not valid", name),
			}
		}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: v.unknownTool(name)}
}

// denied returns the tool with a name if it is not offered because rules deny every call of
// it. Such a call is made nevertheless, so that it is answered with the reason and logged.
func (v *view) denied(ctx context.Context, name string) (engine.Found, bool) {
	t, err := v.registry.Lookup(name)
	if err != nil || !v.profile.shows(t) {
		return engine.Found{}, false
	}
	if _, hidden, err := v.session.Offers.Split(ctx, v.registry, []*registry.Tool{t}); err != nil || len(hidden) == 0 {
		return engine.Found{}, false
	}
	return engine.FoundIn(v.registry, []*registry.Tool{t})[0], true
}

// hiddenBy returns the hidden tool that err, of a lookup, is about, or nil.
func hiddenBy(err error) *registry.Hidden {
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok {
		return missing.Hidden
	}
	return nil
}

// unknownTool returns the message about a tool that is not offered.
func (v *view) unknownTool(name string) string {
	message := fmt.Sprintf("unknown tool %q (%d tools are offered)", name, len(v.tools))
	if near := registry.Near(name, v.names()); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	var failed []string
	for _, server := range v.failed {
		of, _ := registry.ServerOf(server.Name())
		if !v.profile.showsServer(of) {
			continue
		}
		if login := v.loginTo(server); login != nil {
			message += fmt.Sprintf("; server %q needs a login and lists its tools after that; call %s", of, login.Name)
			continue
		}
		failed = append(failed, of)
	}
	if len(failed) > 0 {
		message += "; servers that could not list their tools: " + strings.Join(failed, ", ")
	}
	return message
}

// pageSize is the number of entries on a page of a list.
const pageSize = 1000

// listedTools is a page of tools/list whose tools are written as they were
// declared, because the SDK's type does not have all their fields.
type listedTools struct {
	*mcp.ListToolsResult
	tools []*declaration
}

// permitted returns tools without those of which rules deny every call to the caller of ctx.
func (o *offer) permitted(ctx context.Context, tools []*declaration) []*declaration {
	if !o.rules.HasCallers() {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(d *declaration) bool {
		return o.rules.DeniesTool(ctx, d.Tool)
	})
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
	for _, t := range l.tools {
		size += len(t.raw) + 1
	}
	out := append(make([]byte, 0, size), before+`"tools":[`...)
	for i, t := range l.tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, t.raw...)
	}
	return append(append(out, ']'), after...), nil
}
