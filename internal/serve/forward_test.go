//go:build unix

package serve

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/store/storetest"
)

// senderHeader says who sends a request that another replica forwards.
const senderHeader = "Toolreg-Sender"

// What a client sends cannot change who sends it, where it goes, or what the other replica reads.
func TestForwardedRequestsHaveTheirOwnSender(t *testing.T) {
	tokens := auth.NewTokens(map[string]string{"alice": aliceToken, "bob": bobToken})
	replicas := newSharing(t, tokens, map[string]string{"m": "--dialogs;modern"}, three(storetest.Start(t).URL())[:2]...)
	alice, bob := newRawSession(t, replicas[0].Server, aliceToken), newRawSession(t, replicas[0].Server, bobToken)
	send := func(to *sharing, session, token, path string, header map[string]string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.URL+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"seconds":0}}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "Authorization": "Bearer " + token} {
			req.Header.Set(name, value)
		}
		for name, value := range header {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(data)
	}
	sender, err := json.Marshal(auth.Identity{Name: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	as := map[string]string{senderHeader: base64.StdEncoding.EncodeToString(sender), "Toolreg-Replica": replicas[0].server.replica.ID}
	for _, to := range replicas {
		if status, answer := send(to, alice.id, bobToken, auth.Endpoint, as); status != http.StatusNotFound {
			t.Errorf("another client's session: %d %s", status, answer)
		}
		for _, path := range []string{"/tasks", "/answers/x"} {
			if status, answer := send(to, "", bobToken, path, as); status != http.StatusNotFound {
				t.Errorf("%s: %d %s", path, status, answer)
			}
		}
		for name, value := range map[string]string{"Connection": "Mcp-Session-Id, Toolreg-Sender, Content-Type, close", "Upgrade": "websocket", "Te": "trailers",
			"Mcp-Protocol-Version": "2025-11-25", "Expect": "100-continue", "Idempotency-Key": "x", "X-Forwarded-For": "1.2.3.4", senderHeader: "x"} {
			if status, answer := send(to, bob.id, bobToken, auth.Endpoint, map[string]string{name: value}); status != http.StatusOK || !strings.Contains(answer, "slept") {
				t.Errorf("%s: %d %s", name, status, answer)
			}
		}
	}
}
