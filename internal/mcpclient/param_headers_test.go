package mcpclient

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
)

func errorString(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A tool whose headers cannot be sent is left out over HTTP. It works over
// stdio, which has no headers.
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
	if byName["bad"].Quarantine == nil || byName["good"].Quarantine != nil || len(diags) != 1 {
		t.Fatalf("tools %v, diagnostics %v", byName, diags)
	}
	if d := diags[0]; d.Tool != "bad" || !strings.Contains(d.Message, `its x-mcp-header "N" belongs to a param that is not a string`) {
		t.Errorf("diagnostic %+v", d)
	}
	byName, diags = discovered(t, source(t, scripted(t, refuseProbe, shakeHands, listingOf(strings.ReplaceAll(tools, "\n", "")))))
	if len(byName) != 2 || len(diags) != 0 {
		t.Errorf("stdio: tools %v, diagnostics %v", byName, diags)
	}
}

// TestNamesInHeaders checks that names which a header cannot carry are encoded.
func TestNamesInHeaders(t *testing.T) {
	for name, want := range map[string]string{
		"plain": "plain", "天气": "=?base64?5aSp5rCU?=", "line\nbreak": "=?base64?bGluZQpicmVhaw==?=", " lead": "=?base64?IGxlYWQ=?=",
	} {
		web := modernServer(t, func(w http.ResponseWriter, method, id string) {
			switch method {
			case "server/discover":
				writeRPC(w, http.StatusOK, id, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			case "tools/list":
				writeRPC(w, http.StatusOK, id, `"result":{"tools":[{"name":`+jsonx.Quote(name)+`,"inputSchema":{"type":"object"}}]}`)
			default:
				writeRPC(w, http.StatusOK, id, `"result":{"content":[]}`)
			}
		})
		tools, _ := discovered(t, source(t, httpServer(web.URL)))
		run(t, tools, name, `{}`)
		if got := web.headers[len(web.headers)-1].Get("Mcp-Name"); got != want {
			t.Errorf("%q is sent as %q", name, got)
		}
	}
}

// TestNamesAsTheyAre checks that a server which refuses an encoded name gets the name as it is, if a header
// can carry it.
func TestNamesAsTheyAre(t *testing.T) {
	for name, want := range map[string][]string{
		"plain": {"plain"}, "天气": {"=?base64?5aSp5rCU?=", "天气"}, "line\nbreak": {"=?base64?bGluZQpicmVhaw==?="},
	} {
		web := modernServer(t, func(w http.ResponseWriter, method, id string) {
			switch method {
			case "server/discover":
				writeRPC(w, http.StatusOK, id, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			case "tools/list":
				writeRPC(w, http.StatusOK, id, `"result":{"tools":[{"name":`+jsonx.Quote(name)+`,"inputSchema":{"type":"object"}}]}`)
			default:
				writeRPC(w, http.StatusBadRequest, id, `"error":{"code":-32020,"message":"header mismatch"}`)
			}
		})
		tools, _ := discovered(t, source(t, httpServer(web.URL)))
		r := run(t, tools, name, `{}`)
		var got []string
		for _, header := range web.headers {
			if header.Get("Mcp-Method") == "tools/call" {
				got = append(got, header.Get("Mcp-Name"))
			}
		}
		if !slices.Equal(got, want) || !r.IsError {
			t.Errorf("%q is sent as %q, result %+v", name, got, r)
		}
	}
}

// modernServer returns an HTTP server that answers with reply, one request at a
// time.
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
