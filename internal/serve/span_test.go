package serve

import (
	"testing"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Requests over HTTP have the ids of their bodies, those of a batch none.
func TestRequestID(t *testing.T) {
	for body, want := range map[string]string{`{"id":7}`: "7", `{"id":"a\"b"}`: `a"b`, `{}`: "", `[{"id":7}]`: ""} {
		under := &underway{}
		under.Store(&inbound{body: []byte(body)})
		req := &mcp.CallToolRequest{Extra: &mcp.RequestExtra{TokenInfo: &sdkauth.TokenInfo{Extra: map[string]any{extraUnderway: under}}}}
		if got := requestID(req); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if got := requestID(&mcp.CallToolRequest{}); got != "" {
		t.Errorf("a request of which nothing is known: %q", got)
	}
}
