package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// lineReader finds the messages in a server's stdout: lines that are a JSON
// object or array. Other output, which many servers print (banners, logs, npm),
// is skipped up to a limit.
type lineReader struct {
	r     *bufio.Reader
	limit *CurrentLimit
	log   *slog.Logger
	first bool // nothing has been read yet

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
		case (line[0] == '{' || line[0] == '[') && jsonx.Valid(line):
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
