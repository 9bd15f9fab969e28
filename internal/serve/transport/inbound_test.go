package transport

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a header is compared with is what is used, and every message is compared.
func TestMessagesAgreeWithHeaders(t *testing.T) {
	for name, want := range map[string]bool{"Mcp-Param-Region": false, "Mcp-Session-Id": false, "Content-Type": false, "Accept": true} {
		if err := CheckHeaders(&http.Request{Header: http.Header{name: {"a", "b"}}}); (err == nil) != want {
			t.Errorf("two values of %s: %v", name, err)
		}
	}
	const (
		modern = `{"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		older  = `{"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`
		none   = `{"method":"ping"}`
	)
	for body, want := range map[string]struct{ modern, older bool }{
		modern: {true, false}, older: {false, true}, none: {true, true},
		"[" + none + "," + modern + "]": {true, false}, "[" + older + "," + none + "]": {false, true}, "[" + older + "," + modern + "]": {false, false},
	} {
		for _, in := range []*Inbound{{Modern: true, Body: json.RawMessage(body)}, {Body: json.RawMessage(body)}} {
			if got := in.SameRevision(); got != (in.Modern && want.modern || !in.Modern && want.older) {
				t.Errorf("%s: modern: %t: %t", body, in.Modern, got)
			}
		}
	}
}

// Requests over HTTP have the ids of their bodies, those of a batch none.
func TestRequestID(t *testing.T) {
	for body, want := range map[string]string{`{"id":7}`: "7", `{"id":"a\"b"}`: `a"b`, `{}`: "", `[{"id":7}]`: ""} {
		under := &underway{}
		under.Store(&Inbound{Body: []byte(body)})
		req := &mcp.CallToolRequest{Extra: &mcp.RequestExtra{TokenInfo: withOrigin(under)}}
		if got := RequestID(req); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if got := RequestID(&mcp.CallToolRequest{}); got != "" {
		t.Errorf("a request of which nothing is known: %q", got)
	}
}

// Empty lists become empty objects in each message of a batch, but not within what clients have tools work on.
func TestEmptyListsBecomeObjects(t *testing.T) {
	const first = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`
	for body, want := range map[string]string{
		first + `[]}`: first + `{}}`,
		`[` + first + "[ \n]}," + first + `[1]}]`:     `[` + first + "{ \n}}," + first + `[1]}]`,
		first + `{"arguments":[],"_meta":[]}}`:        first + `{"arguments":{},"_meta":{}}}`,
		first + `{"arguments":{"a":[]},"list":[]}}`:   first + `{"arguments":{"a":[]},"list":[]}}`,
		first + `{"capabilities":{"x":[],"y":[{}]}}}`: first + `{"capabilities":{"x":{},"y":[{}]}}}`,
	} {
		got := json.RawMessage(body)
		if err := CheckBody(got); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}
