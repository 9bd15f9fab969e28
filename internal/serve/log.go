//lint:file-ignore SA1019 clients still use logging, which a later revision deprecates

package serve

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient"
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
			if c, ok := m.Caller.Peer.(*client); ok {
				c = c.carrier()
				c.out.post(func() {
					_ = c.session.Log(c.request, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(m.Level), Logger: m.Logger, Data: m.Text})
				})
			}
		}
	}
}
