package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// listenPause is the time before a stream that ended is reopened, unless the
	// server names one between minListenPause, which keeps it from making us ask in a
	// busy loop, and maxListenPause.
	listenPause    = time.Second
	minListenPause = 100 * time.Millisecond
	maxListenPause = 30 * time.Second
)

// eventStream is the state that outlives one connection of an event stream
// (HTML, server-sent events).
type eventStream struct {
	last  string        // id of the last event
	pause time.Duration // before the next connection
}

// read passes on the data of each message event until the stream ends, and
// reports whether there was any.
func (s *eventStream) read(r io.Reader, limit int64, event func([]byte)) bool {
	lines := bufio.NewReader(r)
	var data []byte
	name, any := "", false
	for {
		line, err := readLine(lines, limit-int64(len(data)))
		if err != nil {
			return any // an unterminated event is discarded
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			if len(line) > 0 {
				continue // a comment
			}
			if data = bytes.TrimSuffix(data, []byte("\n")); len(data) > 0 && (name == "" || name == "message") {
				any = true
				event(data)
			}
			data, name = nil, ""
		case "data":
			data = append(append(data, value...), '\n')
		case "event":
			name = string(value)
		case "id":
			s.last = headerValue(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 32); err == nil {
				s.pause = min(max(time.Duration(ms)*time.Millisecond, minListenPause), maxListenPause)
			}
		}
	}
}

// headerValue returns an event's id if a header can carry it, otherwise "".
func headerValue(id []byte) string {
	if len(id) > 1<<10 || !isVisible(string(id)) {
		return ""
	}
	return string(id)
}

// isVisible reports whether s has only the characters allowed in a session id,
// 0x21 to 0x7E.
func isVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7E }) < 0
}

var errLongEvent = errors.New("an event larger than the limit")

// readLine returns the next line without its end, which is LF or CR LF.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); int64(len(line)) > limit {
			return nil, errLongEvent
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), err
	}
}
