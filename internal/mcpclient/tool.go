package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// tools converts listed tools to registry tools. A tool that cannot be used gets a diagnostic, and
// is quarantined if its name is unique. headers says that params may have to be sent in HTTP
// headers too.
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
	if l.reading == nil { // it did not come from a server in this run
		l.reading = &sync.WaitGroup{}
		q.opts.readDefinitions(&l, l.items)
	}
	l.reading.Wait()
	for i, listed := range l.definitions[:len(l.items)] {
		d, err := listed.Definition, listed.err
		if err == nil && headers {
			err = wire.CheckParamHeaders(d.InputSchema)
		}
		if err != nil && d.Name != "" && !seen[d.ServerTool] {
			d.InputSchema, d.OutputSchema, d.Annotations = json.RawMessage(noParams), nil, nil
			t := q.tool(&d, identity)
			t.Quarantine = err
			tools = append(tools, t)
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

// countUsable counts the tools that are not quarantined.
func countUsable(tools []registry.Tool) int {
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

// definition is a listed tool, or the reason why it cannot be used.
type definition struct {
	registry.Definition
	err error
}

// readDefinitions reads the definitions of a page of a listing, in the background if the page is
// large.
func (o *Options) readDefinitions(l *listing, items []json.RawMessage) {
	page := make([]definition, len(items))
	for i := range page {
		l.definitions = append(l.definitions, &page[i])
	}
	some := func(from, to int) {
		for i := from; i < to; i++ {
			page[i].Definition, page[i].err = o.definition(items[i])
		}
	}
	const share = 64
	if len(items) <= share {
		some(0, len(items))
		return
	}
	for from := 0; from < len(items); from += share {
		l.reading.Go(func() { some(from, min(from+share, len(items))) })
	}
}

// definition reads one element of a tools/list result (revision 2025-11-25). If
// it returns an error, the Definition has the name of the tool, if known.
func (o *Options) definition(raw json.RawMessage) (registry.Definition, error) {
	d := registry.Definition{Source: registry.MCPPrefix + o.Server.Name,
		Server: o.Server.Name, Category: registry.CategoryOther, OutputMarkdown: true}
	if jsonx.KindOf(raw) != jsonx.Object {
		return d, errors.New("it is not an object")
	}
	var name, description json.RawMessage
	for key, value := range jsonx.Members(raw) {
		if jsonx.IsNull(value) || jsonx.IsEmptyList(value) && key != "icons" { // other fields are not lists
			continue
		}
		switch key {
		case "name":
			name = value
		case "description":
			description = value
		case "inputSchema":
			d.InputSchema = value
		case "outputSchema":
			d.OutputSchema = value
		case "annotations":
			d.Annotations = value
		default:
			o.keepField(&d.MCP, key, value)
		}
	}
	var ok bool
	if d.ServerTool, ok = jsonx.Text(name); !ok || d.ServerTool == "" {
		return d, errors.New("it has no name")
	}
	d.Name = registry.ValidName(d.ServerTool)
	d.DisplayName = fmt.Sprintf("%s (%s MCP Server)", d.ServerTool, d.Server)
	if key, twice := jsonx.DuplicateKey(raw); twice {
		return d, fmt.Errorf("its definition repeats the key %s", text.Quote(key))
	}
	if description != nil {
		if d.Description, ok = jsonx.Text(description); !ok {
			return d, errors.New("its description is not a string")
		}
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(noParams)
	}
	return d, o.checkParts(&d)
}

// noParams is the input schema of a tool that does not declare one.
const noParams = `{"type":"object","properties":{}}`

// keepField keeps a field that toolreg only passes on. A malformed field is dropped, since it is no
// reason to reject the tool.
func (o *Options) keepField(f *registry.MCPFields, key string, value json.RawMessage) {
	kind := jsonx.KindOf(value)
	switch {
	case int64(len(value)) > o.Limits.Schema:
	case key == "title":
		f.Title, _ = jsonx.Text(value)
	case key == "icons" && kind == jsonx.Array:
		f.Icons = value
	case key == "execution" && kind == jsonx.Object:
		f.Execution = value
	case key == "_meta" && kind == jsonx.Object:
		f.Meta = value
	}
}

// checkParts checks the parts that are kept as sent.
func (o *Options) checkParts(d *registry.Definition) error {
	for _, part := range []struct {
		name string
		raw  *json.RawMessage
	}{{"inputSchema", &d.InputSchema}, {"outputSchema", &d.OutputSchema}, {"annotations", &d.Annotations}} {
		switch {
		case *part.raw == nil:
			continue
		case jsonx.KindOf(*part.raw) != jsonx.Object:
			return fmt.Errorf("its %s is not an object", part.name)
		case int64(len(*part.raw)) > o.Limits.Schema:
			return fmt.Errorf("its %s has %d bytes, but the limit is %d (limits.schema)",
				part.name, len(*part.raw), o.Limits.Schema)
		}
	}
	return nil
}
