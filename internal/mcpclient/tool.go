package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// tools converts listed tools to registry tools. A tool that cannot be used
// gets a diagnostic, and is quarantined if its name is unique. headers reports
// whether params may have to be sent in HTTP headers.
func (q *requester) tools(l listing, headers bool) ([]registry.Tool, []registry.Diagnostic) {
	tools := make([]registry.Tool, 0, len(l.items))
	var diags []registry.Diagnostic
	if l.cut != "" {
		severity := registry.SeverityWarning
		if l.loop {
			severity = registry.SeverityError
		}
		diags = append(diags, q.opts.diagnose(severity, "listing_cut", "", "tools/list: "+l.cut, ""))
	}
	identity := identityOf(q.opts.Server)
	seen := make(map[string]bool, len(l.items))
	if l.pages == nil { // it did not come from a server
		l.pages = []*reading{q.opts.readDefinitions(l.items)}
	}
	for i, listed := range l.definitions() {
		d, err := listed.Definition, listed.err
		if err == nil && headers {
			err = wire.CheckParamHeaders(d.InputSchema)
		}
		if err != nil && d.Name != "" && !seen[d.ServerTool] {
			tools = append(tools, q.quarantined(d, identity, err))
		}
		switch {
		case err != nil:
			diags = append(diags, q.opts.diagnose(registry.SeverityWarning, "tool_malformed", d.Name,
				fmt.Sprintf("tool %d of the listing was left out: %v", i+1, err), "report this to the server's author"))
			continue
		case seen[d.ServerTool]:
			diags = append(diags, q.opts.diagnose(registry.SeverityWarning, "tool_duplicate", d.Name,
				fmt.Sprintf("tool %d of the listing was left out: its name %s is already listed",
					i+1, text.Quote(d.ServerTool)), ""))
			continue
		}
		seen[d.ServerTool] = true
		tools = append(tools, q.tool(&listed.Definition, identity))
	}
	return tools, diags
}

// quarantined returns the tool of a definition that cannot be used.
func (q *requester) quarantined(d registry.Definition, identity json.RawMessage, reason error) registry.Tool {
	d.InputSchema, d.OutputSchema, d.Annotations = json.RawMessage(noParams), nil, nil
	t := q.tool(&d, identity)
	t.Quarantine = reason
	return t
}

// usable counts the tools that are not quarantined.
func usable(tools []registry.Tool) int {
	n := 0
	for i := range tools {
		if tools[i].Quarantine == nil {
			n++
		}
	}
	return n
}

func (q *requester) tool(d *registry.Definition, identity json.RawMessage) registry.Tool {
	server := q.opts.Server
	validator := registry.NewOutputValidator(d.OutputSchema)
	t := registry.Tool{Definition: *d, Identity: identity, Trusted: server.Trust}
	t.Timeout = server.Timeout
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return q.call(ctx, d, call, validator)
	}
	t.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
		return registry.Preview{
			Kind:  registry.PreviewMCP,
			Title: fmt.Sprintf("call %s on MCP server %s", text.Quote(d.ServerTool), text.Quote(server.Name)),
		}, nil
	}
	return t
}

// identityOf returns what identifies the program or endpoint that runs a
// server's tools: the strings of its settings as written, but only the names of
// secrets, since the identity is shown and stored in files that other programs
// read.
func identityOf(s settings.Server) json.RawMessage {
	names := func(pairs []settings.Pair) []string {
		out := make([]string, len(pairs))
		for i, p := range pairs {
			out[i] = p.Name
		}
		return out
	}
	identity, err := jsonx.Marshal(struct {
		Command string   `json:"command,omitempty"`
		Args    []string `json:"args,omitempty"`
		Env     []string `json:"env,omitempty"`
		Inherit bool     `json:"inheritEnv,omitempty"`
		Cwd     string   `json:"cwd,omitempty"`
		URL     string   `json:"url,omitempty"`
		HTTPURL string   `json:"httpUrl,omitempty"`
		Type    string   `json:"type,omitempty"`
		Headers []string `json:"headers,omitempty"`
	}{s.Command, secret.Args(s.Args), names(s.Env), s.InheritEnv, s.Cwd,
		secret.MaskKnown(s.URL), secret.MaskKnown(s.HTTPURL), s.Type, names(s.Headers)})
	if err != nil {
		return json.RawMessage("{}") // only strings: cannot fail
	}
	return identity
}
