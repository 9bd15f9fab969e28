package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// lineReader finds the messages in a server's stdout: lines that are a JSON
// object or array. Other output, which many servers print (banners, logs, npm),
// is skipped up to a limit.
type lineReader struct {
	r         *bufio.Reader
	limit     *CurrentLimit
	log       *slog.Logger
	first     bool // nothing has been read yet
	skipsLong bool // a line that exceeds the limit is a *badMessageError
	checked   bool // lines are valid, except one that is cut off at the end

	mu      sync.Mutex
	skipped Skipped
}

// maxSkipped limits how many bytes of other text a server may print.
const maxSkipped = 1 << 20

// Skipped is text on a server's stdout that is not a message.
type Skipped struct {
	Lines, Bytes int64
	First        string // the first such line, cut
}

func newLineReader(r io.Reader, limit *CurrentLimit, log *slog.Logger) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit, log: log, first: true}
}

// next returns the next line of JSON, without surrounding space. The line
// belongs to the caller. A malformed message is a *badMessageError.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		if l.first && len(line) > 0 {
			line, l.first = bytes.TrimPrefix(line, []byte(byteOrderMark)), false
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case (line[0] == '{' || line[0] == '[') && (l.checked && err == nil || jsonx.Valid(line)):
			return line, nil // on an error the next call returns it again
		case line[0] == '{' && errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF // it ended in the middle of a message
		case line[0] == '{' && bytes.Contains(line, []byte(`"jsonrpc"`)):
			return nil, &badMessageError{answer: !bytes.Contains(line, []byte(`"method"`)), reason: "invalid JSON"}
		default:
			if err := l.skip(line); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// maxPart is the size of the parts in which a long line is collected.
const maxPart = 1 << 20

// line reads up to a newline or the end, at most limit bytes. A long line is
// collected in parts, because a slice that grows would keep up to three times
// its size in memory.
func (l *lineReader) line() ([]byte, error) {
	var full [][]byte
	var line []byte
	total := 0
	for {
		part, err := l.r.ReadSlice('\n')
		total += len(part)
		if most := l.limit.Load(); int64(total) > most.Bytes {
			if l.skipsLong {
				head := slices.Concat(line, part)
				if full != nil {
					head = full[0]
				}
				return nil, l.skipLong(head, part, total, most)
			}
			return nil, most.Exceeded("message")
		}
		if cap(line)-len(line) < len(part) {
			if line != nil {
				full = append(full, line)
			}
			line = make([]byte, 0, max(len(part), min(2*cap(line), maxPart)))
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case full == nil:
			return line, err
		default:
			return slices.Concat(append(full, line)...), err
		}
	}
}

// maxLong is how much longer than its limit a line that is skipped may be.
const maxLong = 4

// skipLong skips the rest of a line that exceeds the limit. The error tells which request the
// line has answered. head is its beginning, part was read last, and total is their length.
func (l *lineReader) skipLong(head, part []byte, total int, most Limit) error {
	tail := slices.Clone(part)
	for ; !bytes.HasSuffix(tail, []byte("\n")); total += len(part) {
		if int64(total) > maxLong*most.Bytes {
			return most.Exceeded("message")
		}
		var err error
		if part, err = l.r.ReadSlice('\n'); err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		tail = append(tail[max(0, len(tail)-maxID):], part...)
	}
	return &badMessageError{answer: true, id: idOfLong(head, tail), long: most.Exceeded("message"), reason: "too long"}
}

// maxID is how close to an end of its message an id has to be for idOfLong, in bytes.
const maxID = 100

// idOfLong returns the id of an answer of which the middle is unknown, if it is the first
// or the last of its members but "jsonrpc"; otherwise an invalid id.
func idOfLong(head, tail []byte) jsonrpc.ID {
	const version, id = `"jsonrpc"\s*:\s*"2.0"\s*`, `"id"\s*:\s*(\d+|"[^"\\]*")\s*`
	found := regexp.MustCompile(`^\s*\{\s*(?:` + version + `,\s*)?` + id + `,`).FindSubmatch(head[:min(len(head), maxID)])
	if found == nil {
		found = regexp.MustCompile(`,\s*` + id + `(?:,\s*` + version + `)?\}\s*$`).FindSubmatch(tail[max(0, len(tail)-maxID):])
	}
	if found == nil {
		return jsonrpc.ID{}
	}
	return messageID(found[1])
}

func (l *lineReader) skip(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipped.Lines == 0 {
		l.skipped.First = text.Valid(text.Head(line, 300))
		l.log.Warn("the server prints text on stdout, which is reserved for messages; skipped", "line", l.skipped.First)
	}
	l.skipped.Lines++
	l.skipped.Bytes += int64(len(line))
	if l.skipped.Bytes > maxSkipped {
		return fmt.Errorf("more than %s of text on stdout that is not a message", size(maxSkipped))
	}
	return nil
}

// skippedSoFar returns what was skipped.
func (l *lineReader) skippedSoFar() Skipped {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.skipped
}
