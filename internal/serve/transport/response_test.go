package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An error that the SDK writes as the whole response is one event if the stream is open
// already, and is followed by no comment if it is not.
func TestErrorsOfOpenStreamsAreEvents(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`
	event := "event: message\ndata: " + refusal + "\n\n"
	for name, test := range map[string]struct {
		open, late bool // the stream is opened: before the SDK sets the headers of the error, or after
		code       int
		body       string
	}{
		"open":             {true, false, http.StatusOK, event},
		"open at the time": {false, true, http.StatusOK, event},
		"not open":         {false, false, http.StatusBadRequest, refusal},
	} {
		w := httptest.NewRecorder()
		s := NewResponse(w, time.Hour)
		s.Header().Set("Content-Type", "text/event-stream")
		s.Begin()
		if test.open {
			s.comment()
		}
		s.Header().Set("Content-Type", "application/json")
		if test.late {
			s.comment()
		}
		s.WriteHeader(http.StatusBadRequest)
		if n, err := s.Write([]byte(refusal)); n != len(refusal) || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if !test.open && !test.late {
			s.comment() // that was due
		}
		s.End()
		if w.Code != test.code || w.Body.String() != test.body {
			t.Errorf("%s: status %d and %q", name, w.Code, w.Body)
		}
		if got := w.Result().Header.Get("Content-Type") == "text/event-stream"; got != (test.open || test.late) {
			t.Errorf("%s: headers %v", name, w.Result().Header)
		}
	}
}
