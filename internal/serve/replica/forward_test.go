package replica

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// An answer that is interrupted ends with an error as its last event, unless it answers nothing. Within an
// event it breaks off.
func TestInterruptedAnswers(t *testing.T) {
	const request, event = `{"jsonrpc":"2.0","id":"a","method":"tools/call"}`, "data: {}\n\n"
	broken := iotest.ErrReader(errors.New("broken"))
	for _, tt := range []struct {
		name, request string
		rest          []io.Reader
		want          string
		breaks        bool
	}{
		{"whole", request, []io.Reader{strings.NewReader(event)}, event, false},
		{"nothing", request, []io.Reader{broken}, "error", false},
		{"an event", request, []io.Reader{strings.NewReader(event), broken}, "error", false},
		{"an event in parts", request, []io.Reader{iotest.OneByteReader(strings.NewReader(event)), broken}, "error", false},
		{"part of an event", request, []io.Reader{strings.NewReader(event + "data: {"), broken}, event + "data: {", true},
		{"a line of an event", request, []io.Reader{strings.NewReader(event), strings.NewReader("data: {}\n"), broken}, event + "data: {}\n", true},
		{"a stream", "", []io.Reader{strings.NewReader(event), broken}, event, false},
		{"a notification", `{"jsonrpc":"2.0","method":"x"}`, []io.Reader{strings.NewReader(event), broken}, event, false},
	} {
		got, err := io.ReadAll(&eventsTo{ReadCloser: io.NopCloser(io.MultiReader(tt.rest...)), request: []byte(tt.request), end: eventEnd})
		if breaks := err != nil; breaks != tt.breaks {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.want != "error" {
			if string(got) != tt.want {
				t.Errorf("%s: %q", tt.name, got)
			}
			continue
		}
		var message struct {
			ID    string `json:"id"`
			Error struct{ Code int }
		}
		_, data, _ := strings.Cut(string(got), "event: message\ndata: ")
		if err := json.Unmarshal([]byte(data), &message); err != nil || message.ID != "a" || message.Error.Code != -32603 {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
