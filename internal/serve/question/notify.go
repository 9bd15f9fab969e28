//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package question

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// LogTo passes log messages of servers to the client during whose call they
// arrived. Messages that belong to no single call go to other.
func LogTo(other func() func(mcpclient.LogMessage)) func() func(mcpclient.LogMessage) {
	return func() func(mcpclient.LogMessage) {
		rest := other()
		return func(m mcpclient.LogMessage) {
			if m.Caller == nil {
				rest(m)
				return
			}
			if c, ok := m.Caller.Peer.(*Client); ok {
				to := c.current()
				to.post(func() {
					_ = to.Session.Log(to.Request,
						&mcp.LoggingMessageParams{Level: mcp.LoggingLevel(m.Level), Logger: m.Logger, Data: m.Text})
				})
			}
		}
	}
}

// Progress returns the function that passes progress of a request on to its client; nil
// if it is not wanted. If the client may be asked a question first, the request with its
// answer may ask for progress too.
func Progress(ctx context.Context) func(registry.Progress) {
	c := From(ctx)
	if c == nil || c.progress == nil && (!c.Modern || c.can.Elicitation == nil && c.can.Sampling == nil) {
		return nil
	}
	return func(p registry.Progress) {
		to := c.current()
		if to.progress == nil {
			return
		}
		to.post(func() {
			_ = to.Session.NotifyProgress(to.Request,
				&mcp.ProgressNotificationParams{ProgressToken: to.progress,
					Progress: p.Done, Total: p.Total, Message: p.Message})
		})
	}
}
