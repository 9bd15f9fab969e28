package offer

import (
	"context"
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

// ResolveTool replaces the name in a call by the offered name: server__tool and aliases work as in
// `toolreg call`. An unknown tool is a protocol error.
func (v *View) ResolveTool(ctx context.Context, params *mcp.CallToolParamsRaw) error {
	name := params.Name
	if v.Tool(name) != nil {
		return nil
	}
	if _, ok := v.denied(ctx, name); ok {
		return nil
	}
	t, err := v.Registry.Lookup(name)
	err = engine.ScopeError(v.profile.context(ctx), v.Registry, name, err)
	if h := hiddenBy(err); h != nil && (h.Kept || h.Now != "") {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: exec.Explain(err)}
	}
	if err == nil {
		for _, offered := range v.tools {
			if offered.Tool == t {
				params.Name = offered.Name
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

// Find returns the tool that a call by name runs: an offered tool, one that logs in to a server, or
// one whose every call is denied. It returns false if there is none.
func (v *View) Find(ctx context.Context, name string) (engine.Found, bool) {
	if offered := v.Tool(name); offered != nil {
		return offered.Found, true
	}
	if t := v.LoginTool(name); t != nil {
		return engine.FoundIn(v.Registry, []*registry.Tool{t})[0], true
	}
	return v.denied(ctx, name)
}

// denied returns the tool with a name if rules deny its every call, so that it is not offered. Such
// a call is made nevertheless, to be logged and answered with the reason.
func (v *View) denied(ctx context.Context, name string) (engine.Found, bool) {
	t, err := v.Registry.Lookup(name)
	if err != nil || !v.profile.shows(t) {
		return engine.Found{}, false
	}
	if _, hidden, err := v.Session.Offers.Split(ctx, v.Registry, []*registry.Tool{t}); err != nil || len(hidden) == 0 {
		return engine.Found{}, false
	}
	return engine.FoundIn(v.Registry, []*registry.Tool{t})[0], true
}

// FailedServerOf returns the server of the profile that a name belongs to, as server__tool or as a
// kept name, if that server could not list its tools; otherwise nil.
func (v *View) FailedServerOf(name string) registry.Source {
	if name == "" {
		return nil
	}
	_, err := v.Registry.Lookup(name)
	if h := hiddenBy(err); h != nil && h.Kept {
		server, _ := registry.ServerOf(h.Source)
		name = server + "__"
	}
	named := v.Servers.Of(name)
	if named == nil || !slices.Contains(v.Failed, named) {
		return nil
	}
	if of, _ := registry.ServerOf(named.Name()); !v.profile.showsServer(of) {
		return nil
	}
	return named
}

// hiddenBy returns the hidden tool that the error of a lookup is about; nil if there is none.
func hiddenBy(err error) *registry.Hidden {
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok {
		return missing.Hidden
	}
	return nil
}

// unknownTool returns the message about a tool that is not offered.
func (v *View) unknownTool(name string) string {
	message := fmt.Sprintf("unknown tool %q (%d tools are offered)", name, len(v.tools))
	names := make([]string, len(v.tools))
	for i, t := range v.tools {
		names[i] = t.Name
	}
	if near := registry.Near(name, names); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	var failed []string
	for _, server := range v.Failed {
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

// permitted returns tools without those whose every call is denied to the caller of ctx.
func (v *View) permitted(ctx context.Context, tools []*Declaration) []*Declaration {
	if !v.Rules.HasCallers() {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(d *Declaration) bool {
		return v.Rules.DeniesTool(ctx, d.Tool)
	})
}
