package provider

import (
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

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
	request := o
	c := Call{kind: kindBare}
	if o.has("method") || o.has("jsonrpc") {
		if c.id = requestID(o["id"]); c.id == nil {
			return errors.New("a request in it has no id")
		}
		if method := o.text("method"); method != "tools/call" {
			return errors.New("a request in it is for " + method + ", not for tools/call")
		}
		c.kind, request = kindRequest, asObject(o["params"])
	} else if o.text("name") == "" || o.has("type") || o.has("id") || o.has("args") {
		return errUnrecognized // may be another provider's call
	}
	if c.Name = request.text("name"); c.Name == "" {
		return errors.New("a call in it does not name a tool")
	}
	c.Params = params(request["arguments"])
	t.Calls = append(t.Calls, c)
	return nil
}

// A tools/call result and its JSON-RPC response.
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
