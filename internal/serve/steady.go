package serve

import (
	"net/http"
	"time"
)

// stallTime is how long a client may leave a response unread.
const stallTime = 30 * time.Second

// steady is a response that closes its connection if the client does not read it.
type steady struct {
	http.ResponseWriter
	timing *http.ResponseController
}

func newSteady(w http.ResponseWriter) steady { return steady{w, http.NewResponseController(w)} }

// limit limits the time of one write. The returned function lifts the limit, because a
// stream may be silent for longer.
func (s steady) limit() func() {
	_ = s.timing.SetWriteDeadline(time.Now().Add(stallTime))
	return func() { _ = s.timing.SetWriteDeadline(time.Time{}) }
}

// Write implements http.ResponseWriter.
func (s steady) Write(p []byte) (int, error) {
	defer s.limit()()
	return s.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (s steady) Flush() {
	defer s.limit()()
	_ = s.timing.Flush()
}

// Unwrap returns the wrapped writer to http.ResponseController.
func (s steady) Unwrap() http.ResponseWriter { return s.ResponseWriter }
