package transport

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxNotification is the longest progress or log message that is passed on, in
// bytes.
const maxNotification = 4 << 10

// notification passes progress to the calls it belongs to, in the order in
// which the server sent it and thus before the result, and log messages and changes
// to their receivers. All others are dropped.
func (c *Conn) notification(r *jsonrpc.Request) {
	switch r.Method {
	case "notifications/progress":
		c.progress(r.Params)
	case "notifications/message":
		c.logMessage(r.Params)
	case "notifications/elicitation/complete":
		c.completed(r.Params)
	case "notifications/tools/list_changed":
		c.changed(Change{List: "tools"})
	case "notifications/prompts/list_changed":
		c.changed(Change{List: "prompts"})
	case "notifications/resources/list_changed":
		c.changed(Change{List: "resources"})
	case "notifications/resources/updated":
		uri, _ := jsonx.Text(jsonx.Get(r.Params, "uri"))
		c.changed(Change{URI: uri})
	default:
		c.opts.Logger.Debug("notification dropped", "method", text.Head(r.Method, 100))
	}
}

func (c *Conn) changed(change Change) {
	if c.opts.Changed != nil {
		c.opts.Changed(change)
	}
}

func (c *Conn) progress(params json.RawMessage) {
	var p struct {
		Token    any     `json:"progressToken"`
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
		Message  string  `json:"message"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	token, _ := p.Token.(string)
	if token == "" {
		return
	}
	for _, x := range c.withProgress() {
		if x.Token("") == token {
			x.progress(registry.Progress{Done: p.Progress, Total: p.Total, Message: text.Head(p.Message, maxNotification)})
		}
	}
}

// withProgress returns the exchanges that wait for an answer and want its
// progress.
func (c *Conn) withProgress() []*Exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Exchange
	for _, p := range c.requests.pending {
		if p.exchange != nil && p.exchange.progress != nil {
			out = append(out, p.exchange)
		}
	}
	return out
}

// logMessage passes a log message on. The protocol does not say which request it
// belongs to: the longest-running one is assumed.
func (c *Conn) logMessage(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if c.opts.LogMessage == nil || json.Unmarshal(params, &p) != nil {
		return
	}
	data, ok := jsonx.Text(p.Data)
	if !ok {
		data = string(p.Data)
	}
	c.mu.Lock()
	during := c.during()
	c.mu.Unlock()
	c.opts.LogMessage(during, text.Head(p.Level, 20), text.Head(p.Logger, 100), text.Valid(text.Head(data, maxNotification)))
}
