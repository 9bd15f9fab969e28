package transport

import (
	"encoding/json"
	"testing"
)

// Metadata reach the client as the server sent them.
func TestMetaOf(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{`{"id":9007199254740993}`, `{"id":9007199254740993}`},
		{`{"a":{"deep":[12345678901234567890123,1.10,1e400]}}`, `{"a":{"deep":[12345678901234567890123,1.10,1e400]}}`},
		{`{"b":"x","a":-0}`, `{"a":-0,"b":"x"}`},
		{`{}`, `null`},
		{`[1]`, `null`},
		{``, `null`},
	} {
		got, err := json.Marshal(MetaOf(json.RawMessage(tt.raw)))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v", tt.raw, got, err)
		}
	}
}
