package rpc

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// About says which request and call a question or a notification belongs to. Both are absent if
// unknown.
type About struct {
	RequestID json.RawMessage `json:"requestId,omitempty" jsonschema:"the id of the host's request"`
	CallID    json.RawMessage `json:"callId,omitempty" jsonschema:"the model's id of the call, or else that of the request"`
}

// Call is one call of a request.
type Call struct {
	caller.Silent // it is asked by [Host.Asker]
	request       *Request
	id            json.RawMessage
	asked         atomic.Bool
}

// Call returns a context for a call of a request. id is the model's id of the call; nil means that
// of the request.
func (r *Request) Call(ctx context.Context, host *Host, id json.RawMessage) (context.Context, *Call) {
	if id == nil {
		id = r.ID
	}
	c := &Call{request: r, id: id}
	return caller.With(ctx,
		&caller.Caller{ID: host, Single: true, Client: host.Client.Name, Version: host.Client.Version, Peer: c}), c
}

// callOf returns the call that ctx belongs to; nil if there is none.
func callOf(c *caller.Caller) *Call {
	if c == nil {
		return nil
	}
	found, _ := c.Peer.(*Call)
	return found
}

func (c *Call) about() About { return About{c.request.ID, c.id} }

// AnsweredBy returns who answered a question about the call: "host", or "" if there was no
// answer.
func (c *Call) AnsweredBy() string {
	if c.asked.Load() {
		return "host"
	}
	return ""
}

// Progress is the progress of a call.
type Progress struct {
	About
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Progress tells the host the progress of the call.
func (c *Call) Progress(p registry.Progress) {
	c.request.server.tryNotify("progress", Progress{c.about(), p.Done, p.Total, p.Message})
}

// Output is a part of the output of a call that is running.
type Output struct {
	About
	Content any `json:"content" jsonschema:"a string, or a list of content blocks"`
}

// Output sends the host a part of the output. It waits for a host that reads slowly.
func (c *Call) Output(content any) {
	c.request.server.notify("output", Output{c.about(), content})
}

// Log is a log message of an MCP server.
type Log struct {
	About
	Server string `json:"server"`
	Level  string `json:"level" jsonschema:"debug, info, notice, warning, error, critical, alert or emergency"`
	Logger string `json:"logger,omitempty"`
	Text   string `json:"text"`
}

// ServerLog passes the log messages of servers to the host.
func (s *Server) ServerLog(func() func(mcpclient.LogMessage)) func() func(mcpclient.LogMessage) {
	return func() func(mcpclient.LogMessage) {
		return func(m mcpclient.LogMessage) {
			var about About
			if c := callOf(m.Caller); c != nil {
				about = c.about()
			}
			s.tryNotify("log", Log{about, m.Server, m.Level, m.Logger, m.Text})
		}
	}
}

// Diagnostic is a problem that did not stop a request.
type Diagnostic struct {
	About
	registry.Diagnostic
}

// Diagnose tells the host about a problem. r may be nil.
func (s *Server) Diagnose(r *Request, d registry.Diagnostic) {
	out := Diagnostic{Diagnostic: d}
	if r != nil {
		out.RequestID = r.ID
	}
	s.tryNotify("diagnostic", out)
}

// Changed says that the registry has changed.
type Changed struct {
	Names []string `json:"names" jsonschema:"the tools that were added, removed or changed, as far as the host knows them"`
}

// Changed tells the host that tools have changed. It waits for a host that reads slowly.
func (s *Server) Changed(names []string) { s.notify("changed", Changed{names}) }
