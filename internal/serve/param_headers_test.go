package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// Params that a tool declares for headers must have the same value there.
func TestParamHeadersMustMatch(t *testing.T) {
	s := newServer(t, map[string]string{"m": "--dialogs;modern"})
	h := listen(t, s, nil)
	for name, tt := range map[string]struct {
		lines map[string]string
		want  int
		text  string
	}{
		"the same":          {map[string]string{"Mcp-Param-Region": "north"}, 200, "north"},
		"the same, encoded": {map[string]string{"Mcp-Param-Region": "=?base64?bm9ydGg=?="}, 200, "north"},
		"encoded name":      {map[string]string{"Mcp-Param-Region": "north", "Mcp-Name": "=?base64?bWlycm9y?="}, 200, "north"},
		"encoded, no end":   {map[string]string{"Mcp-Param-Region": "north", "Mcp-Name": "=?base64?bWlycm9y"}, 400, "Mcp-Name"},
		"another":           {map[string]string{"Mcp-Param-Region": "south"}, 400, "does not match"},
		"none":              {nil, 400, "missing Mcp-Param-Region"},
		"name of another":   {map[string]string{"Mcp-Param-Region": "north", "Mcp-Name": "echo"}, 400, "Mcp-Name"},
		"no name":           {map[string]string{"Mcp-Param-Region": "north", "Mcp-Name": ""}, 400, "Mcp-Name"},
		"another method":    {map[string]string{"Mcp-Param-Region": "north", "Mcp-Method": "tools/list"}, 400, "Mcp-Method"},
	} {
		t.Run(name, func(t *testing.T) {
			const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirror","arguments":{"region":"north"},"_meta":{
				"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/mcp", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": wire.FirstModern, "Mcp-Method": "tools/call", "Mcp-Name": "mirror"} {
				r.Header.Set(k, v)
			}
			for k, v := range tt.lines {
				r.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tt.want || !strings.Contains(string(text), tt.text) {
				t.Errorf("%s: %s, %v", resp.Status, text, err)
			}
		})
	}
	// A client that has read the list sends the headers automatically.
	c := newClient(t, h.URL, "", "c", "")
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "mirror", Arguments: map[string]any{"region": "north"}})
	if err != nil || r.IsError {
		t.Errorf("%v, %v", textOf(r), err)
	}
	if by, _ := json.Marshal(r.Meta[mcp.MetaKeyServerInfo]); !strings.Contains(string(by), `"toolreg"`) {
		t.Errorf("the result names the server %s", by)
	}
}
