package mcpclient

import (
	"encoding/json"
	"strings"
	"testing"
)

// A server's task is read without trusting what it says.
func TestTaskOf(t *testing.T) {
	long := strings.Repeat("a", 1024)
	for _, tt := range []struct{ raw, id, status, poll string }{
		{`{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":250}`, "a", "working", "250ms"},
		{`{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":1e300}`, "a", "working", "30s"},
		{`{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":-1}`, "a", "working", "1s"},
		{`{"resultType":"task","taskId":"a","status":7,"pollIntervalMs":1}`, "a", "", "100ms"},
		{`{"task":{"taskId":"b","status":"working","pollInterval":2000}}`, "b", "working", "2s"},
		{`{"task":{"taskId":"b"},"content":[]}`, "", "", ""}, // a result with a field of that name
		{`{"content":[]}`, "", "", ""},
		{`{"resultType":"task"}`, "error", "", ""},
		{`{"resultType":"task","taskId":"` + long + `","status":"working"}`, long, "working", "1s"},
		{`{"resultType":"task","taskId":"` + long + `a","status":"working"}`, "error", "", ""},
	} {
		got, err := taskOf(json.RawMessage(tt.raw))
		switch {
		case err != nil:
			if tt.id != "error" {
				t.Errorf("%s: %v", tt.raw, err)
			}
		case got == nil:
			if tt.id != "" {
				t.Errorf("%s: no task", tt.raw)
			}
		case got.id != tt.id || got.status != tt.status || got.poll.String() != tt.poll:
			t.Errorf("%s: %q, %q, %s", tt.raw, got.id, got.status, got.poll)
		}
	}
}

func FuzzTaskOf(f *testing.F) {
	f.Add(`{"resultType":"task","taskId":"a","status":"working","pollIntervalMs":250}`)
	f.Add(`{"task":{"taskId":"b","pollInterval":1e9}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if !json.Valid([]byte(raw)) {
			return
		}
		if got, err := taskOf(json.RawMessage(raw)); err == nil && got != nil && (got.id == "" || got.poll < pollMin || got.poll > pollMax) {
			t.Errorf("%q: %+v", raw, got)
		}
	})
}
