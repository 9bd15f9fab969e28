package mcpclient

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/registry"
)

// maxNote is the longest progress or log message handed on, in bytes.
const maxNote = 4 << 10

// notification hands progress to the calls it belongs to, in the order of the
// wire, so before the result, and log messages to whoever shows them. All others
// are dropped: one-shot runs do not list anew, however often a server says that
// its list changed.
func (w *wire) notification(r *jsonrpc.Request) {
	switch r.Method {
	case "notifications/progress":
		w.progress(r.Params)
	case "notifications/message":
		w.message(r.Params)
	case "notifications/elicitation/complete":
		w.completed(r.Params)
	default:
		w.opts.log.Debug("notification dropped", "method", cut(r.Method, 100))
	}
}

func (w *wire) progress(params json.RawMessage) {
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
	for _, x := range w.listeners() {
		if token != "" && x.token == token {
			x.progress(registry.Progress{Done: p.Progress, Total: p.Total, Message: cut(p.Message, maxNote)})
		}
	}
}

// message hands a log message on. The protocol does not say what it is about.
func (w *wire) message(params json.RawMessage) {
	var p struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if w.opts.note == nil || json.Unmarshal(params, &p) != nil {
		return
	}
	data, ok := text(p.Data)
	if !ok {
		data = string(p.Data)
	}
	w.opts.note(cut(p.Level, 20), cut(p.Logger, 100), cut(data, maxNote))
}

// listeners returns the exchanges that wait for an answer and want to hear of
// its progress.
func (w *wire) listeners() []*exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*exchange
	for _, p := range w.pending {
		if p.exchange != nil && p.exchange.progress != nil {
			out = append(out, p.exchange)
		}
	}
	return out
}

// cut shortens s to at most n bytes of valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
