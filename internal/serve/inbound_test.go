package serve

import (
	"encoding/json"
	"net/http"
	"testing"
)

// What a header is compared with is what is used, and every message is compared.
func TestMessagesAgreeWithHeaders(t *testing.T) {
	var p taskParams
	const params = `{"taskId":"a","TASKID":"b","TaskId":"c"}`
	if err := json.Unmarshal([]byte(params), &p); err != nil || p.ID != "a" || !sameTask("a", json.RawMessage(`{"method":"tasks/get","params":`+params+`}`)) {
		t.Errorf("the task %q, %v", p.ID, err)
	}
	for name, want := range map[string]bool{"Mcp-Param-Region": false, "Mcp-Session-Id": false, "Content-Type": false, "Accept": true} {
		if err := checkHeaders(&http.Request{Header: http.Header{name: {"a", "b"}}}); (err == nil) != want {
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
		for _, in := range []*inbound{{modern: true, body: json.RawMessage(body)}, {body: json.RawMessage(body)}} {
			if got := in.sameRevision(); got != (in.modern && want.modern || !in.modern && want.older) {
				t.Errorf("%s: modern: %t: %t", body, in.modern, got)
			}
		}
	}
}
