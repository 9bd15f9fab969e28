package mcpclient

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestCheckMirrored(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"a":` + p + `}}` }
	tests := []struct{ name, schema, want string }{
		{"none", property(`{"type":"array"}`), ""},
		{"string", property(`{"type":"string","x-mcp-header":"Region"}`), ""},
		{"nested", property(`{"type":"object","properties":{"b":{"x-mcp-header":"B","type":"integer"}}}`), ""},
		{"a param of that name", `{"type":"object","properties":{"x-mcp-header":{"type":"array"}}}`, ""},
		{"data", property(`{"type":"array","default":[{"x-mcp-header":""}],"enum":[{"x-mcp-header":1}]}`), ""},
		{"empty", property(`{"type":"string","x-mcp-header":""}`), "is no name"},
		{"no string", property(`{"type":"string","x-mcp-header":5}`), "is no name"},
		{"number", property(`{"type":"number","x-mcp-header":"A"}`), "no string, integer or boolean"},
		{"untyped", property(`{"x-mcp-header":"A"}`), "no string, integer or boolean"},
		{"nullable", property(`{"type":["string","null"],"x-mcp-header":"A"}`), "no string, integer or boolean"},
		{"space", property(`{"type":"string","x-mcp-header":"My A"}`), "no name of an HTTP header"},
		{"newline", property(`{"type":"string","x-mcp-header":"A\r\nHost"}`), "no name of an HTTP header"},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"type":"object","properties":{"c":{"type":"boolean","x-mcp-header":"sAME"}}}}}`, "comes twice"},
		{"root", `{"type":"object","x-mcp-header":"A"}`, "properties alone"},
		{"items", property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`), "properties alone"},
		{"anyOf", property(`{"anyOf":[{"type":"string"},{"type":"string","x-mcp-header":"A"}]}`), "properties alone"},
		{"$defs", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}`, "properties alone"},
		{"deep", strings.Repeat(`{"not":`, 200) + `{"x-mcp-header":"A"}` + strings.Repeat("}", 200), "deeper than 100 levels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !json.Valid([]byte(tt.schema)) {
				t.Fatal("the schema is no JSON")
			}
			err := checkMirrored(json.RawMessage(tt.schema))
			if got := errorString(err); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func errorString(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A tool whose headers cannot be sent is left out over HTTP; over stdio, which
// has no headers, it works.
func TestToolsWithBadHeaders(t *testing.T) {
	const tools = `{"name":"good","inputSchema":{"type":"object"}},
		{"name":"bad","inputSchema":{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}}`
	web := modernServer(t, func(w http.ResponseWriter, method, id string) {
		switch method {
		case "server/discover":
			writeRPC(w, http.StatusOK, id, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case "tools/list":
			writeRPC(w, http.StatusOK, id, `"result":{"tools":[`+tools+`]}`)
		}
	})
	byName, diags := discovered(t, source(t, httpServer(web.URL)))
	if len(byName) != 1 || len(diags) != 1 {
		t.Fatalf("tools %v, diagnostics %v", byName, diags)
	}
	if d := diags[0]; d.Tool != "bad" || !strings.Contains(d.Message, `its x-mcp-header "N" is about a param that is no string`) {
		t.Errorf("diagnostic %+v", d)
	}
	byName, diags = discovered(t, source(t, scripted(t, refuseProbe, shakeHands, listingOf(strings.ReplaceAll(tools, "\n", "")))))
	if len(byName) != 2 || len(diags) != 0 {
		t.Errorf("stdio: tools %v, diagnostics %v", byName, diags)
	}
}

// modernServer answers over HTTP with what reply writes, one request at a time.
func modernServer(t *testing.T, reply func(w http.ResponseWriter, method, id string)) *served {
	t.Helper()
	return serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
				t.Errorf("the request is no JSON: %v", err)
			}
			reply(w, m.Method, string(m.ID))
		})
	})
}

func writeRPC(w http.ResponseWriter, status int, id, outcome string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,` + outcome + `}`))
}
