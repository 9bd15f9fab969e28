package dialogue

import (
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Kinds of calls of format mcp. A bare call is answered by a bare result.
const (
	kindRequest = "request"
	kindBare    = "bare"
)

// decodeMCP reads a tools/call request of MCP (revision 2025-11-25), its
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
			return errors.New("a request in it has no id to answer to")
		}
		if method := o.text("method"); method != "tools/call" {
			return errors.New("a request in it is for " + method + ", not for tools/call")
		}
		c.kind, request = kindRequest, asObject(o["params"])
	} else if o.text("name") == "" || o.has("type") || o.has("id") || o.has("args") {
		return errUnrecognised // perhaps a call in another provider's form
	}
	if c.Name = request.text("name"); c.Name == "" {
		return errors.New("a call in it names no tool")
	}
	c.Params = params(request["arguments"])
	t.Calls = append(t.Calls, c)
	return nil
}

// replyMCP writes a JSON-RPC response for each request. An unknown tool is an
// error of the protocol, all else is a result that the model reads.
func replyMCP(t *Turn, answers []Answer) []any {
	type result struct {
		Content    []registry.Content `json:"content"`
		Structured json.RawMessage    `json:"structuredContent,omitempty"`
		IsError    bool               `json:"isError,omitempty"`
	}
	type failure struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	type response struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  *result         `json:"result,omitempty"`
		Error   *failure        `json:"error,omitempty"`
	}
	const invalidParams = -32602
	out := make([]any, len(answers))
	for i, a := range answers {
		r := &result{Content: a.Content, Structured: a.Structured, IsError: a.IsError}
		if len(r.Content) == 0 {
			r.Content = []registry.Content{}
		}
		if isNull(r.Structured) || asObject(r.Structured) == nil { // objects alone are allowed
			r.Structured = nil
		}
		switch {
		case t.Calls[i].kind == kindBare:
			out[i] = r
		case a.Unknown:
			out[i] = response{Version: "2.0", ID: t.Calls[i].id, Error: &failure{invalidParams, (&registry.Result{Content: a.Content}).Text()}}
		default:
			out[i] = response{Version: "2.0", ID: t.Calls[i].id, Result: r}
		}
	}
	return out
}
