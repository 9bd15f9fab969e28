package mcpclient

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
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

// TestChangedHeaders checks that a tool whose headers have changed is listed again, also by runs that know the list of
// an earlier one.
func TestChangedHeaders(t *testing.T) {
	var now atomic.Value
	now.Store("Region")
	web := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.NewDecoder(r.Body).Decode(&m)
			header := now.Load().(string)
			switch {
			case m.Method == "server/discover":
				writeRPC(w, http.StatusOK, string(m.ID), `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
			case m.Method == "tools/list":
				writeRPC(w, http.StatusOK, string(m.ID), `"result":{"tools":[{"name":"q","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"`+header+`"}}}}]}`)
			case r.Header.Get("Mcp-Param-"+header) == "":
				writeRPC(w, http.StatusBadRequest, string(m.ID), `"error":{"code":-32020,"message":"header mismatch"}`)
			default:
				writeRPC(w, http.StatusOK, string(m.ID), `"result":{"content":[]}`)
			}
		})
	})
	start := keepers(t, httpServer(web.URL))
	for i, header := range []string{"Region", "Zone", "Zone"} {
		now.Store(header)
		s := start()
		var changes []Change
		s.Follow(func(c Change) { changes = append(changes, c) })
		tools, _ := discovered(t, s)
		r := run(t, tools, "q", `{"r":"x"}`)
		if fails := i == 1; r.IsError != fails || strings.Contains(r.Text(), "may have changed") != fails ||
			slices.Contains(changes, Change{List: "tools"}) != fails {
			t.Errorf("run %d: %s, changes %v", i, r.Text(), changes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusedRevisionWithoutMessage checks that a refusal which is no JSON-RPC message is understood, too.
func TestRefusedRevisionWithoutMessage(t *testing.T) {
	for _, refused := range []string{"Unsupported protocol version (supported versions: 2025-06-18, 2025-03-26)",
		`{"error":{"code":-32000,"message":"supported versions: 2025-06-18"},"jsonrpc":"2.0"}`,
		`{"message":"Failed to initialize session: Unrecognized field \"form\""}`} {
		web := serve(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch id := string(jsonx.Get(body, "id")); {
				case bytes.Contains(body, []byte(`"protocolVersion":"2025-06-18"`)):
					writeRPC(w, http.StatusOK, id, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}`)
				case bytes.Contains(body, []byte(`"tools/list"`)):
					writeRPC(w, http.StatusOK, id, `"result":{"tools":[]}`)
				case id == "": // a notification
				default:
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, refused)
				}
			})
		})
		s := source(t, httpServer(web.URL))
		if _, diags := discovered(t, s); s.Info().ProtocolVersion != "2025-06-18" {
			t.Errorf("%s: %+v, %v", refused, s.Info(), diags)
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
