package wire

import (
	"errors"
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
		{"several data lines", "data: a\ndata: b\n\n", []string{"a\nb"}, "", 0},
		{"CR LF", "id: 7\r\ndata: a\r\n\r\n", []string{"a"}, "7", 0},
		{"errors", "event: error\ndata: a\n\n", []string{"a"}, "", 0},
		{"other events", "event: ping\ndata: a\n\nevent: message\ndata: b\n\n", []string{"b"}, "", 0},
		{"comments, priming, retry", ": hello\nid: 1\nretry: 250\ndata:\n\n", nil, "1", 250 * time.Millisecond},
		{"CR", "id: 7\rdata: a\r\rdata: b\r\r", []string{"a", "b"}, "7", 0},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []string{"a"}, "", 0},
		{"cut off", "data: a\n\nid: 7\ndata: b\n", []string{"a"}, "", 0},
		{"a message that is not terminated", "data: a\n\nid: 7\ndata: {}", []string{"a", "{}"}, "7", 0},
		{"an id that a header cannot carry", "id: a\x00b\ndata: x\n\n", []string{"x"}, "", 0},
		{"retry too late", "retry: 4000000000\n\n", nil, "", maxListenPause},
		{"retry too early", "retry: 0\n\n", nil, "", minListenPause},
		{"negative retry", "retry: -5\n\n", nil, "", 0},
		{"over the limit", "data: a\n\ndata: " + strings.Repeat("x", 200) + "\n\ndata: c\n\n", []string{"a"}, "", 0},
		{"many lines over the limit", "data: a\n\n" + strings.Repeat("data: x\n", 100) + "\n", []string{"a"}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s eventStream
			var got []string
			_ = s.read(strings.NewReader(tt.text), func() int64 { return 100 }, func(data []byte) bool {
				got = append(got, string(data))
				return true
			})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if s.last != tt.last || s.pause != tt.pause {
				t.Errorf("last %q, pause %s", s.last, s.pause)
			}
		})
	}
}

// Each event is limited separately, by the limit at its time, however the
// stream is split into reads.
func TestEachEventOfAStreamIsLimited(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		event := strings.ReplaceAll("event: message\ndata: 0123456789\n\n", "\n", end)
		for piece := 1; piece < 9; piece++ {
			limit := int64(len(event))
			stream := strings.NewReader(strings.Repeat(event, 50) + "data: " + strings.Repeat("x", 60) + end + end + event)
			events := newEventReader(pieces{stream, piece}, func() int64 { return limit })
			got := 0
			e, err := events.next()
			for ; err == nil; e, err = events.next() {
				if string(e.data) != "0123456789" || e.name != "message" {
					t.Fatalf("event %+v", e)
				}
				got++
			}
			if got != 50 || !errors.Is(err, errLongEvent) {
				t.Errorf("pieces of %d: %d events, %v", piece, got, err)
			}
			stream.Reset(strings.Repeat(event, 2))
			limit = 1000
			if _, err := events.next(); err != nil {
				t.Errorf("pieces of %d: under a wider limit: %v", piece, err)
			}
		}
	}
}

// pieces reads at most size bytes at a time.
type pieces struct {
	r    io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }
