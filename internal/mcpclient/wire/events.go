package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// listenPause is the time before a stream that ended is reopened. The server can
	// set it between minListenPause, which prevents a busy loop, and maxListenPause.
	listenPause    = time.Second
	minListenPause = 100 * time.Millisecond
	maxListenPause = 30 * time.Second
)

// serverEvent is one event of an event stream (HTML, server-sent events). Fields
// that are missing or unusable are empty.
type serverEvent struct {
	name, id       string
	hasID, hasData bool
	retry          time.Duration
	data           []byte
}

// isMessage reports whether the event may carry a message: some servers send errors in events of that name.
func (e *serverEvent) isMessage() bool {
	return len(e.data) > 0 && (e.name == "" || e.name == "message" || e.name == "error")
}

// eventReader reads an event stream.
type eventReader struct {
	r     *bufio.Reader
	limit func() int64 // bytes of one event
	begun bool         // a line was read
}

func newEventReader(r io.Reader, limit func() int64) *eventReader {
	return &eventReader{r: bufio.NewReader(&lineEnds{r: r}), limit: limit}
}

// next returns the next event. At the end of the stream it returns the unterminated
// event, if any, together with the error.
func (r *eventReader) next() (e serverEvent, err error) {
	size := 0
	for {
		line, err := r.line(size)
		if len(line) > 0 {
			size += len(line) + 1
			e.field(line)
		}
		if len(line) == 0 || err != nil {
			return e, err
		}
	}
}

func (e *serverEvent) field(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if e.hasData {
			value = append(append(e.data, '\n'), value...)
		}
		e.data, e.hasData = value, true // a long line is not copied
	case "event":
		e.name = string(value)
	case "id":
		if e.id, e.hasID = string(value), true; len(value) > 1<<10 || !isVisible(e.id) {
			e.id = "" // no header can carry it
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 64); err == nil {
			e.retry = min(max(time.Duration(min(ms, 1e9))*time.Millisecond, minListenPause), maxListenPause)
		}
	}
}

var errLongEvent = errors.New("an event larger than the limit")

// line returns the next line without its terminator. size is the size of the
// event so far.
func (r *eventReader) line(size int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if line = append(line, part...); int64(size+len(line)) > r.limit() {
			return nil, errLongEvent
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !r.begun {
			line, r.begun = text.WithoutMark(line), true
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// lineEnds converts line terminators (LF, CR LF or CR) to LF.
type lineEnds struct {
	r       io.Reader
	afterCR bool
}

func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		if n = l.convert(p[:n]); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (l *lineEnds) convert(p []byte) int {
	if !l.afterCR && bytes.IndexByte(p, '\r') < 0 {
		return len(p)
	}
	kept := p[:0]
	for _, b := range p {
		if b != '\n' || !l.afterCR {
			kept = append(kept, b)
		}
		if l.afterCR = b == '\r'; l.afterCR {
			kept[len(kept)-1] = '\n'
		}
	}
	return len(kept)
}

// eventStream is the state of a stream that may have several connections, one after the other.
type eventStream struct {
	last   string        // id of the last event
	pause  time.Duration // before the next connection
	stalls int           // how often in a row a connection has ended soon and without anything new
}

// read passes on the data of each message event, until use returns false or the connection
// ends, for which it returns the reason. An event that is not terminated counts only if its
// data is whole, and one that is too long is not read again.
func (s *eventStream) read(r io.Reader, limit func() int64, use func(data []byte) (more bool)) error {
	for events := newEventReader(r, limit); ; {
		e, err := events.next()
		whole := err == nil || e.isMessage() && jsonx.Valid(e.data)
		if e.hasID && (whole || errors.Is(err, errLongEvent)) {
			s.last = e.id
		}
		if e.retry > 0 {
			s.pause = e.retry
		}
		if whole && e.isMessage() && !use(e.data) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isVisible reports whether s has only the characters allowed in a session id,
// 0x21 to 0x7E.
func isVisible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7E }) < 0
}

// lasting is how long a connection is open that ends because something on the way closes what is
// idle. Many balancers do after a minute, so its end says nothing about the server.
const lasting = 5 * time.Second

// ended counts the end of a connection that was opened at a time.
func (s *eventStream) ended(opened time.Time, hadNew bool) {
	s.stalls++
	if hadNew || time.Since(opened) >= lasting {
		s.stalls = 0
	}
}
