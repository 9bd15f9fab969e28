package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lineReader finds the messages in a server's stdout: lines that are a JSON
// object or array. Everything else is noise, which many servers print (banners,
// logs, npm), and is skipped up to a limit.
type lineReader struct {
	r     *bufio.Reader
	limit *limit
	log   *slog.Logger
	first bool // nothing was read yet

	mu    sync.Mutex
	noise noise
}

// noise is what a server printed that is no protocol.
type noise struct {
	lines, bytes int64
	first        string // the first such line, cut
}

func newLineReader(r io.Reader, limit *limit, log *slog.Logger) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit, log: log, first: true}
}

// next returns the next line that holds JSON, without surrounding space. The
// line is the caller's. A broken line that was meant to be a message is a
// *badMessageError.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		if l.first && len(line) > 0 {
			line, l.first = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")), false
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case (line[0] == '{' || line[0] == '[') && json.Valid(line):
			return line, nil // with an error the next call meets it again
		case line[0] == '{' && errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF // it ended in the middle of a message
		case line[0] == '{' && bytes.Contains(line, []byte(`"jsonrpc"`)):
			return nil, &badMessageError{answer: !bytes.Contains(line, []byte(`"method"`)), reason: "invalid JSON"}
		default:
			if err := l.skipped(line); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads up to a newline or the end, at most limit bytes.
func (l *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if most := l.limit.load(); int64(len(line)+len(part)) > most.bytes {
			return nil, most.exceeded("message")
		}
		if cap(line)-len(line) < len(part) {
			line = append(make([]byte, 0, max(len(part), 2*cap(line))), line...)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func (l *lineReader) skipped(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noise.lines == 0 {
		l.noise.first = cut(string(line), 300)
		l.log.Warn("the server prints text on stdout, which is for messages alone; skipped", "line", l.noise.first)
	}
	l.noise.lines++
	l.noise.bytes += int64(len(line))
	if l.noise.bytes > maxNoise {
		return fmt.Errorf("more than %s of text on stdout that is no message", size(maxNoise))
	}
	return nil
}

// noticed returns the noise so far.
func (l *lineReader) noticed() noise {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noise
}

// decodeMessage makes a message of a valid JSON object. The result of an answer
// stays a part of raw: it may be tens of megabytes.
func decodeMessage(raw json.RawMessage) (jsonrpc.Message, error) {
	var id, method, result json.RawMessage
	var version string
	var failed bool
	for k, v := range members(raw) {
		switch k {
		case "jsonrpc":
			version, _ = text(v)
		case "id":
			id = v
		case "method":
			method = v
		case "result":
			result = v
		case "error":
			failed = !isNull(v)
		}
	}
	rid := messageID(id)
	answer := method == nil
	anonymous := answer && isNull(id) && (result != nil || failed)
	switch {
	case version != "2.0":
		return nil, &badMessageError{answer: anonymous, id: answerID(answer, rid), reason: `it does not say "jsonrpc":"2.0"`}
	case answer && !rid.IsValid():
		return nil, &badMessageError{answer: anonymous, reason: "neither a request nor an answer to one" + errorText(raw)}
	case answer && !failed:
		return &jsonrpc.Response{ID: rid, Result: result}, nil
	}
	m, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, &badMessageError{id: answerID(answer, rid), reason: err.Error()}
	}
	return m, nil
}

// answerID returns id for an answer; a request's id is another space.
func answerID(answer bool, id jsonrpc.ID) jsonrpc.ID {
	if !answer {
		return jsonrpc.ID{}
	}
	return id
}

// messageID decodes an id as the SDK does: a string or an integer.
func messageID(raw json.RawMessage) jsonrpc.ID {
	if s, ok := text(raw); ok {
		raw, _ := jsonrpc.MakeID(s)
		return raw
	}
	var n float64
	if len(raw) == 0 || strings.ContainsAny(string(raw), ".eE{[ntf") || json.Unmarshal(raw, &n) != nil {
		return jsonrpc.ID{}
	}
	id, _ := jsonrpc.MakeID(n)
	return id
}

// errorText returns the message of an error answer, for the reader of ours.
func errorText(raw json.RawMessage) string {
	if s, ok := text(member(member(raw, "error"), "message")); ok {
		return " (" + cut(s, 300) + ")"
	}
	return ""
}
