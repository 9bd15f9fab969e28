package provider

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
)

// mcp writes the result of tools/list (MCP revision 2025-11-25): inputSchema
// and outputSchema of type object, names of 1 to 128 letters, digits,
// underscores, dashes and dots.
func mcp() Format {
	return Format{
		Name:    "mcp",
		Summary: "an MCP tools/list result",
		expects: "a tools/call request, its params, or a list of these",
		decode:  decodeMCP,
		reply:   replyMCP,
		rule:    nameRule{extra: ".-", max: 128},
		layout:  layout{open: `{"tools":[`, between: ",", close: "]}", empty: `{"tools":[]}`},
		prepare: func(e *encoder, t *tool) { e.changed(t, rewrite.ForClients(t.schema)) },
		write: func(e *encoder, t *tool) {
			e.raw(`{"name":`)
			e.string(t.name)
			if title := t.def.Title(); title != "" && title != t.name {
				e.text("title", title)
			}
			if t.def.Description != "" {
				e.text("description", t.def.Description)
			}
			e.raw(`,"inputSchema":`)
			e.value(t.schema)
			e.writeFurther(t, "outputSchema", t.def.MCPOutputSchema(), e.outputSchema)
			e.writeFurther(t, "annotations", registry.ToolHints(t.def.Annotations), e.object)
			e.writeFurther(t, "execution", t.def.MCP.Execution, e.object)
			e.writeFurther(t, "icons", registry.Icons(t.def.MCP.Icons), e.array)
			e.writeFurther(t, "_meta", t.def.MCP.Meta, e.object)
			e.raw("}")
		},
	}
}

// writeFurther writes another value of a definition, or reports why it is omitted. The
// tool's schema must not be used afterwards.
func (e *encoder) writeFurther(t *tool, key string, raw []byte, read func([]byte) (*jsonx.Value, error)) {
	if jsonx.IsNull(raw) {
		return
	}
	n, err := read(raw)
	if err != nil {
		e.diagnose(registry.SeverityWarning, "declaration_partly_left_out", t,
			fmt.Sprintf("declared without its %s: %v", key, err), "fix it at the source of the tool")
		return
	}
	e.raw(`,"` + key + `":`)
	e.value(n)
}

// Kinds of calls in the format mcp. Params without a request are answered by a
// result without a response.
const (
	kindRequest = "request"
	kindBare    = "bare"
)

// decodeMCP decodes a tools/call request of MCP (revision 2025-11-25), its
// params, or a list of these.
func decodeMCP(t *Turn, raw json.RawMessage) error {
	list, ok := jsonx.Elements(raw)
	if !ok {
		list = []json.RawMessage{raw}
	}
	for _, raw := range list {
		if err := t.addMCP(asObject(raw)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) addMCP(o object) error {
	kind, request := kindBare, o
	if o.has("method") || o.has("jsonrpc") {
		if idOf(o["id"]) == nil {
			return errors.New("a request in it has no id")
		}
		if method := o.text("method"); method != "tools/call" {
			return errors.New("a request in it is for " + method + ", not for tools/call")
		}
		kind, request = kindRequest, asObject(o["params"])
	} else if o.text("name") == "" || o.has("type") || o.has("id") || o.has("args") {
		return errUnrecognized // may be another provider's call
	}
	c := callOf(request, "", "arguments")
	if c.Name == "" {
		return errors.New("a call in it does not name a tool")
	}
	c.id, c.kind = idOf(o["id"]), kind
	t.Calls = append(t.Calls, c)
	return nil
}

type (
	mcpResult struct {
		Content    []registry.Content `json:"content"`
		Structured json.RawMessage    `json:"structuredContent,omitempty"`
		IsError    bool               `json:"isError,omitempty"`
	}
	mcpError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	mcpResponse struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  *mcpResult      `json:"result,omitempty"`
		Error   *mcpError       `json:"error,omitempty"`
	}
)

// replyMCP writes a JSON-RPC response for each request. An unknown tool is a
// protocol error; all other failures are results, which the model reads.
func replyMCP(t *Turn, answers []Answer) []any {
	const invalidParams = -32602
	out := make([]any, len(answers))
	for i, a := range answers {
		r := mcpResponse{Version: "2.0", ID: t.Calls[i].id}
		switch {
		case t.Calls[i].kind == kindBare:
			out[i] = newMCPResult(a)
			continue
		case a.Unknown:
			r.Error = &mcpError{invalidParams, (&registry.Result{Content: a.Content}).Text()}
		default:
			r.Result = newMCPResult(a)
		}
		out[i] = r
	}
	return out
}

func newMCPResult(a Answer) *mcpResult {
	r := &mcpResult{Content: a.Content, IsError: a.IsError}
	if len(r.Content) == 0 {
		r.Content = []registry.Content{}
	}
	if jsonx.KindOf(a.Structured) == jsonx.Object { // only objects are allowed
		r.Structured = a.Structured
	}
	return r
}
