package mcpclient

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server may refuse the revision of the first probe and name another that both
// sides speak. Here it names the same one, which only a second probe can reveal.
func TestProbeIsRepeatedWhenTheServerNamesARevision(t *testing.T) {
	refused := false
	web := modernServer(t, func(w http.ResponseWriter, method, id string) {
		switch {
		case !refused:
			refused = true
			writeRPC(w, http.StatusBadRequest, id, `"error":{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"],"requested":"x"}}`)
		case method == "server/discover":
			writeRPC(w, http.StatusOK, id, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		default:
			writeRPC(w, http.StatusOK, id, `"result":{"tools":[`+oneTool+`]}`)
		}
	})
	s := source(t, httpServer(web.URL))
	if tools, _ := discovered(t, s); len(tools) != 1 || s.Info().ProtocolVersion != "2026-07-28" {
		t.Errorf("tools %v, info %+v", tools, s.Info())
	}
	if diff := cmp.Diff([]string{"POST server/discover", "POST server/discover", "POST tools/list"}, web.asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// A modern server that requires a login reports that only to the probe: it
// answers initialize without a login, and does not support it.
func TestRefusedProbeIsReported(t *testing.T) {
	tests := []struct {
		name, challenge string
		status          int
		want            string
	}{
		{"no login", `Bearer scope="a"`, http.StatusUnauthorized, "401 Unauthorized: who are you?"},
		{"a login with too few permissions", `Bearer error="insufficient_scope", scope="b"`, http.StatusForbidden, "403 Forbidden: who are you?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			web := modernServer(t, func(w http.ResponseWriter, method, id string) {
				if method == "server/discover" {
					w.Header().Set("WWW-Authenticate", tt.challenge)
					http.Error(w, "who are you?", tt.status)
					return
				}
				writeRPC(w, http.StatusNotFound, id, `"error":{"code":-32601,"message":"no such method"}`)
			})
			server := httpServer(web.URL)
			server.URL, server.HTTPURL = server.HTTPURL, ""
			_, _, err := source(t, server).Discover(t.Context())
			if got := errorString(err); !strings.Contains(got, tt.want) {
				t.Errorf("got %q", got)
			}
			if diff := cmp.Diff([]string{"POST server/discover"}, web.asked()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
