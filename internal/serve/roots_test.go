//lint:file-ignore SA1019 clients still use roots, which a later revision deprecates

package serve

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// A server that asks for roots during a call gets those of the client that made it,
// whatever revisions the two speak.
func TestRootsOfTheClient(t *testing.T) {
	for _, upstream := range []string{"legacy", "modern"} {
		s := newServer(t, map[string]string{"m": "--dialogs;" + upstream})
		h := listen(t, s, nil)
		for _, revision := range []string{"2025-11-25", wire.FirstModern} {
			t.Run(upstream+" server, client of "+revision, func(t *testing.T) {
				client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
				client.AddRoots(&mcp.Root{URI: "file:///home/alice/" + revision})
				session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp", DisableStandaloneSSE: true},
					&mcp.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = session.Close() })
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "roots"})
				if err != nil || textOf(r) != "file:///home/alice/"+revision {
					t.Errorf("got %q, %v", textOf(r), err)
				}
			})
		}
	}
}
