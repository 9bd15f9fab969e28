package question

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestQuestionsOfServers checks questions that other SDKs than that of Go write, and some that none does.
func TestQuestionsOfServers(t *testing.T) {
	for _, tt := range []struct {
		raw, fails string
		want       mcp.InputRequestMap
	}{
		{raw: ``},
		{raw: `null`},
		{raw: `{"r":{"method":"roots/list"}}`, want: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}},
		{raw: `{"r":{"method":"roots/list","params":null}}`, want: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}},
		{raw: `{"e":{"method":"elicitation/create","params":{"message":"Name?"}}}`, want: mcp.InputRequestMap{"e": &mcp.ElicitParams{Message: "Name?"}}},
		{raw: `{"e":null}`, fails: `unsupported InputRequest method: ""`},
		{raw: `{"e":{"method":"x"}}`, fails: `unsupported InputRequest method: "x"`},
		{raw: `[]`, fails: "its questions are not objects"},
		{raw: `{"e":"x"}`, fails: "its questions are not objects"},
	} {
		got, err := readRequests(json.RawMessage(tt.raw))
		if diff := cmp.Diff(tt.want, got); diff != "" && tt.fails == "" || err == nil && tt.fails != "" || err != nil && err.Error() != tt.fails {
			t.Errorf("%s: %v (-want +got):\n%s", tt.raw, err, diff)
		}
	}
}
