package transport

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEventStream(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		last       string
		pause      time.Duration
	}{
		{"two", "data: a\n\ndata:b\n\n", []string{"a", "b"}, "", 0},
		{"lines of one", "data: a\ndata: b\n\n", []string{"a\nb"}, "", 0},
		{"CR LF", "id: 7\r\ndata: a\r\n\r\n", []string{"a"}, "7", 0},
		{"other events", "event: ping\ndata: a\n\nevent: message\ndata: b\n\n", []string{"b"}, "", 0},
		{"comments, priming, retry", ": hello\nid: 1\nretry: 250\ndata:\n\n", nil, "1", 250 * time.Millisecond},
		{"cut off", "data: a\n\ndata: b\n", []string{"a"}, "", 0},
		{"an id that is no header", "id: a\x00b\ndata: x\n\n", []string{"x"}, "", 0},
		{"retry for ever", "retry: 4000000000\n\n", nil, "", maxListenPause},
		{"retry at once", "retry: 0\n\n", nil, "", minListenPause},
		{"retry in the past", "retry: -5\n\n", nil, "", 0},
		{"over the limit", "data: a\n\ndata: " + strings.Repeat("x", 200) + "\n\ndata: c\n\n", []string{"a"}, "", 0},
		{"many lines over the limit", "data: a\n\n" + strings.Repeat("data: x\n", 100) + "\n", []string{"a"}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s eventStream
			var got []string
			any := s.read(strings.NewReader(tt.text), 100, func(data []byte) { got = append(got, string(data)) })
			if diff := cmp.Diff(tt.want, got); diff != "" || any != (len(tt.want) > 0) {
				t.Errorf("events, any %v (-want +got):\n%s", any, diff)
			}
			if s.last != tt.last || s.pause != tt.pause {
				t.Errorf("last %q, pause %s", s.last, s.pause)
			}
		})
	}
}

// Each event counts for itself, however the stream comes in pieces, and by the
// limit of its time.
func TestEachEventOfAStreamIsLimited(t *testing.T) {
	event := "event: message\r\ndata: 0123456789\r\n\r\n"
	for _, end := range []string{"\n", "\r\n"} {
		stream := strings.Repeat(strings.ReplaceAll(event, "\r\n", end), 50)
		for piece := 1; piece < 9; piece++ {
			limit := &CurrentLimit{}
			limit.Store(Limit{int64(len(event)), "limits.frame"})
			e := &limitedEvents{ReadCloser: io.NopCloser(strings.NewReader(stream + "data: " + strings.Repeat("x", 60))), limit: limit, failed: func(err error) error { return err }}
			buf, got := make([]byte, piece), 0
			var err error
			for err == nil {
				var n int
				n, err = e.Read(buf)
				got += n
			}
			if got < len(stream) || got > len(stream)+len(event) || !strings.Contains(err.Error(), "limits.frame") {
				t.Errorf("pieces of %d: %d of %d bytes, %v", piece, got, len(stream), err)
			}
			limit.Store(Limit{1000, "limits.result"})
			if _, err := e.Read(buf); err != nil {
				t.Errorf("pieces of %d: under a wider limit: %v", piece, err)
			}
		}
	}
}
