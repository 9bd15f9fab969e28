//lint:file-ignore SA1019 servers still use logging, which a later revision deprecates

package wire

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxNotification limits the length of progress and log messages that are
// passed on, in bytes.
const maxNotification = 4 << 10

// Change is a change reported by a server.
type Change struct {
	List string // tools, prompts or resources; "" for one resource
	URI  string // of that resource
}

// notification passes progress to the calls that it belongs to, in the order in
// which the server sent it and thus before the result, and log messages and changes
// to their receivers. It drops all other notifications.
func (s *Session) notification(r *jsonrpc.Request) {
	switch r.Method {
	case "notifications/progress":
		s.progress(r.Params)
		return
	case "notifications/cancelled":
		s.table.withdraw(messageID(jsonx.Get(r.Params, "requestId")))
		return
	}
	if s.opts.Notified != nil && s.opts.Notified(s.table.during(), r.Method, r.Params) {
		return
	}
	switch r.Method {
	case "notifications/message":
		s.logMessage(r.Params)
	case "notifications/elicitation/complete":
		id, _ := jsonx.Text(jsonx.Get(r.Params, "elicitationId"))
		s.completions.report(id)
	case "notifications/tools/list_changed":
		s.changed(Change{List: "tools"})
	case "notifications/prompts/list_changed":
		s.changed(Change{List: "prompts"})
	case "notifications/resources/list_changed":
		s.changed(Change{List: "resources"})
	case "notifications/resources/updated":
		uri, _ := jsonx.Text(jsonx.Get(r.Params, "uri"))
		s.changed(Change{URI: uri})
	default:
		s.opts.Logger.Debug("notification dropped", "method", text.Head(r.Method, 100))
	}
}

func (s *Session) changed(change Change) {
	if s.opts.Changed != nil {
		s.opts.Changed(change)
	}
}

func (s *Session) progress(params json.RawMessage) {
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
	if heard := s.table.progress(token); heard != nil {
		heard(registry.Progress{Done: p.Progress, Total: p.Total, Message: text.Head(p.Message, maxNotification)})
	}
}

// logMessage passes a log message on. The protocol does not say which request it
// belongs to, so it is attributed to the longest-running one.
func (s *Session) logMessage(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if s.opts.LogMessage == nil || json.Unmarshal(params, &p) != nil {
		return
	}
	data, ok := jsonx.Text(p.Data)
	if !ok {
		data = string(p.Data)
	}
	s.opts.LogMessage(s.table.during(), text.Head(p.Level, 20), text.Head(p.Logger, 100), text.Valid(text.Head(data, maxNotification)))
}

// maxLogLevel is how long a server may take to confirm the log level.
const maxLogLevel = 100 * time.Millisecond

// askForLogs requests log messages from a legacy server, once: many servers send none unless
// asked. It waits for the answer, since a server may handle requests concurrently and start
// with the call. Over HTTP, where that costs a round trip, it asks only if all messages are
// wanted. A modern server gets the level with each request.
func (s *Session) askForLogs(ctx context.Context) {
	s.logs.Do(func() {
		level := s.opts.LogLevel
		_, local := s.link.(*Stdio)
		if level == "" || !local && level != "debug" || s.Modern() || s.Server().Capabilities.Logging == nil {
			return
		}
		answered := make(chan struct{})
		started := s.spawn(func() {
			defer close(answered)
			_, _ = s.Do(context.WithoutCancel(ctx), &Request{Method: "logging/setLevel", Params: marshal(map[string]string{"level": level})})
		})
		if started {
			waitFor(answered, maxLogLevel)
		}
	})
}
