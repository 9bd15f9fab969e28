package wire

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const window = time.Second

const (
	modernResult = `{"supportedVersions":["2026-07-28"]}`
	legacyResult = `{"protocolVersion":"2025-06-18"}`
)

// said is a server's response to a method: its result after a delay. Without a
// result it never answers; "!" refuses.
type said struct {
	result string
	after  time.Duration
}

// shake performs the handshake with a server that responds like this. It returns how long
// that took, its outcome, and the methods that the server received.
func shake(t *testing.T, mode Mode, answers map[string]said) (result, got string) {
	t.Helper()
	s, server := connected(t, Options{})
	var methods strings.Builder
	go func() {
		for m := range server.sent {
			r := m.(*jsonrpc.Request)
			fmt.Fprintln(&methods, r.Method)
			a, ok := answers[r.Method]
			if !ok {
				continue
			}
			go func() {
				time.Sleep(a.after)
				if a.result == "!" {
					server.says(fmt.Sprintf(`"id":%v,"error":{"code":-32601,"message":"unknown method"}`, r.ID.Raw()))
					return
				}
				server.says(fmt.Sprintf(`"id":%v,"result":%s`, r.ID.Raw(), a.result))
			}()
		}
	}()
	t.Cleanup(func() { close(server.sent) })
	start := time.Now()
	err := s.Handshake(t.Context(), mode, window)
	result = fmt.Sprintf("%s: %s", time.Since(start), s.Revision())
	if err != nil {
		result += err.Error()
	}
	synctest.Wait()
	return result, methods.String()
}

func TestHandshake(t *testing.T) {
	const legacyEnd = "server/discover\ninitialize\nnotifications/initialized\n"
	tests := []struct {
		name    string
		mode    Mode
		answers map[string]said
		want    string
		server  string // the methods that the server receives
	}{
		{"modern", ModeAuto, map[string]said{"server/discover": {result: modernResult}},
			"0s: 2026-07-28", "server/discover\n"},
		{"legacy that refuses the probe", ModeAuto, map[string]said{"server/discover": {result: "!"}, "initialize": {result: legacyResult}},
			"0s: 2025-06-18", legacyEnd},
		{"legacy that ignores the probe", ModeAuto, map[string]said{"initialize": {result: legacyResult}},
			"1s: 2025-06-18", legacyEnd},
		{"legacy that starts slowly", ModeAuto, map[string]said{"server/discover": {"!", 5 * time.Second}, "initialize": {legacyResult, 5 * time.Second}},
			"6s: 2025-06-18", legacyEnd},
		{"only legacy is tried", ModeLegacy, map[string]said{"server/discover": {result: modernResult}, "initialize": {result: legacyResult}},
			"0s: 2025-06-18", "initialize\nnotifications/initialized\n"},
		{"modern that starts slowly and ignores initialize", ModeAuto, map[string]said{"server/discover": {result: modernResult, after: 3 * time.Second}},
			"4s: 2026-07-28", "server/discover\ninitialize\n"},
		{"modern that starts slowly and refuses initialize", ModeAuto, map[string]said{"server/discover": {modernResult, 3 * time.Second}, "initialize": {"!", 3 * time.Second}},
			"4s: 2026-07-28", "server/discover\ninitialize\n"},
		{"modern that starts slowly and answers initialize with an empty result", ModeAuto, map[string]said{"server/discover": {modernResult, 1500 * time.Millisecond}, "initialize": {result: "{}"}},
			"1.5s: 2026-07-28", "server/discover\ninitialize\n"},
		{"speaks both, slowly", ModeAuto, map[string]said{"server/discover": {modernResult, 3 * time.Second}, "initialize": {legacyResult, 2500 * time.Millisecond}},
			"3.5s: 2025-06-18", legacyEnd},
		{"refuses both", ModeAuto, map[string]said{"server/discover": {result: "!"}, "initialize": {result: "!"}},
			"0s: unknown method", "server/discover\ninitialize\n"},
		{"ignores one, refuses the other", ModeAuto, map[string]said{"initialize": {result: "!"}},
			"6s: unknown method", "server/discover\ninitialize\n"},
		{"modern that refuses initialize long before it answers the probe", ModeAuto, map[string]said{"server/discover": {modernResult, 5 * time.Second}, "initialize": {result: "!"}},
			"5s: 2026-07-28", "server/discover\ninitialize\n"},
		{"only modern, waits for the answer", ModeModern, map[string]said{"server/discover": {modernResult, 20 * time.Second}},
			"20s: 2026-07-28", "server/discover\n"},
		{"only modern, refused", ModeModern, map[string]said{"server/discover": {result: "!"}},
			"0s: the server does not speak revision 2026-07-28 or later (unknown method)", "server/discover\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, server := shake(t, tt.mode, tt.answers)
				if got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if server != tt.server {
					t.Errorf("the server got %q, want %q", server, tt.server)
				}
			})
		})
	}
}

// Every modern request, and initialize, identify the client.
func TestClientIdentifiesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, server := connected(t, Options{LogLevel: "info"})
		s.opts.Client.Name, s.opts.Client.Version = "toolreg", "1"
		const meta = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/clientInfo":{"name":"toolreg","version":"1"},` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
		go func() { _ = s.Handshake(t.Context(), ModeAuto, time.Hour) }()
		if got, want := server.gets(), `1 server/discover {`+meta+`}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		server.says(`"id":1,"error":{"code":-32601,"message":"no"}`)
		if got, want := server.gets(), `2 initialize {"capabilities":{},"clientInfo":{"name":"toolreg","version":"1"},"protocolVersion":"2025-11-25"}`; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
		s.Close(ErrClosed)
	})
}

// A server should answer with a revision that it speaks, and ignore fields that it does not know. One that refuses is
// asked again in words of older revisions.
func TestRefusedRevision(t *testing.T) {
	const java = `"code":-32603,"message":"Unrecognized field \"form\" (class ClientCapabilities$Elicitation), not marked as ignorable"`
	tests := []struct{ name, refusal, want, capabilities string }{
		{"in the data", `"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05","2025-03-26"],"requested":"2025-11-25"}`, "2025-03-26", "{}"},
		{"in the words", `"code":-32602,"message":"unsupported version 2025-11-25 (supported: 2025-06-18)"`, "2025-06-18", `{"elicitation":{}}`},
		{"nowhere", `"code":-32602,"message":"unsupported version 2025-11-25"`, "", ""},
		{"of the modes of questions", java, "2025-06-18", `{"elicitation":{}}`},
		{"of questions", java, "2025-03-26", "{}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, server := connected(t, Options{})
				s.opts.Capabilities.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
				ended := make(chan error, 1)
				go func() { ended <- s.Handshake(t.Context(), ModeLegacy, window) }()
				for id, done := 1, false; !done; id++ {
					got, answer := server.gets(), `"error":{`+tt.refusal+`}`
					if done = strings.Contains(got, `"protocolVersion":"`+tt.want+`"`); done {
						answer = `"result":{"protocolVersion":"` + tt.want + `"}`
						if !strings.Contains(got, ` initialize {"capabilities":`+tt.capabilities+`,`) {
							t.Errorf("sent %s, want %s", got, tt.capabilities)
						}
					}
					server.says(fmt.Sprintf(`"id":%d,%s`, id, answer))
					done = done || tt.want == "" || id == 5
				}
				if tt.want != "" {
					server.gets() // notifications/initialized
				}
				if err := <-ended; (err == nil) != (tt.want != "") || s.Revision() != tt.want {
					t.Errorf("revision %q, error %v", s.Revision(), err)
				}
				s.Close(ErrClosed)
			})
		})
	}
}
