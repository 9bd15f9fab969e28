package middleware

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// Output limits the size of a result. It keeps the beginning and the end, and
// writes all of it to a file that the result names.
type Output struct {
	Limit int64 // maximum size of the content in bytes; 0 or less means no limit
	Spill int64 // maximum size of the file, in bytes
	// Dir returns the folder for these files. It is called only when a file is
	// needed.
	Dir func() (*state.Dir, error)
	// Mark returns a part of the files' names that says for whom they are; nil means
	// none.
	Mark func(context.Context) string

	texts bool // for a model: only text counts, and the note says how to read on
}

// markRoom is the part of the limit that is reserved for the notes of tools that
// cut their own output.
const markRoom = 512

// Wrap is a [registry.Middleware].
func (o Output) Wrap(t registry.Tool) registry.Tool {
	if o.Limit <= 0 {
		return t
	}
	run, name := t.Run, t.Name
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		s := o.spill(ctx, name)
		call.Keep = o.Limit - min(o.Limit/4, markRoom)
		call.Spill = func(p []byte) { s.add(string(p)) }
		r, err := run(ctx, call)
		return o.limit(ctx, name, r, s), err
	}
	return t
}

// Answer shortens a result for a model: the text of all parts together, and the structured
// result, which is left out if it is too long. Images and other data do not count.
func (o Output) Answer(ctx context.Context, tool string, r registry.Result) registry.Result {
	if o.Limit <= 0 {
		return r
	}
	o.texts = true
	return o.limit(ctx, tool, r, o.spill(ctx, tool))
}

func (o Output) spill(ctx context.Context, tool string) *spill {
	s := &spill{limit: o.Limit, largest: o.Spill, dir: o.Dir, tool: tool}
	if o.Mark != nil {
		s.tool += "-" + o.Mark(ctx)
	}
	return s
}

// limit cuts a result that is too large, and adds the names of the files with all
// of it.
func (o Output) limit(ctx context.Context, tool string, r registry.Result, s *spill) registry.Result {
	size := o.contentSize(r.Content)
	streamed := s.total > 0 && (r.Truncated || s.total > o.Limit)
	if !streamed && size <= o.Limit && int64(len(r.Structured)) <= o.Limit && int64(len(r.Display.Text)) <= o.Limit {
		s.discard()
		return r
	}
	var notes []string
	if streamed {
		notes = append(notes, s.finish("output"))
		r.Whole = s.path
	} else {
		s.discard()
	}
	if size > o.Limit {
		switch {
		case r.Whole != "" && o.texts:
			notes = append(notes,
				fmt.Sprintf("[the output is cut again; the file named above, %s, has all of it%s]",
					filepath.ToSlash(r.Whole), o.readOn(r.Content, beforeOutput)))
		case !streamed:
			var note string
			note, r.Whole = o.saveText(ctx, tool, r.Content)
			notes = append(notes, note)
		}
		r.Content = o.cut(ctx, r.Content, size, tool)
	}
	if int64(len(r.Structured)) > o.Limit {
		if o.texts && len(r.Content) == 0 {
			r.Content = []registry.Content{registry.TextContent(o.cutText(string(r.Structured)))}
		}
		notes = append(notes, o.file(ctx, tool, "structured result", string(r.Structured)))
		r.Structured = nil
	}
	r.Display.Text = o.cutText(r.Display.Text)
	r.Truncated = true
	r.Content = addNote(r.Content, strings.Join(notes, "\n"))
	return r
}

func (o Output) contentSize(parts []registry.Content) int64 {
	var n int64
	for _, c := range parts {
		n += o.partSize(c)
	}
	return n
}

func (o Output) partSize(c registry.Content) int64 {
	if o.texts {
		return int64(len(c.Text))
	}
	return int64(len(c.Text) + len(c.Data))
}

// ends returns how much of the beginning and of the end of a result is kept. For a model, the limit
// includes the notes.
func (o Output) ends() (head, tail int64) {
	limit := o.Limit
	if o.texts {
		limit -= min(limit/4, 2*markRoom)
	}
	return limit / 2, limit - limit/2
}

func (o Output) cutText(s string) string {
	if int64(len(s)) <= o.Limit {
		return s
	}
	head, tail := o.ends()
	return cutText(s, head, tail)
}

// cut keeps the beginning and the end of a result, each up to half of the limit.
// Parts that are not text are kept completely or written to their own files.
func (o Output) cut(ctx context.Context, parts []registry.Content, size int64, tool string) []registry.Content {
	head, tail := o.ends()
	tail = size - tail // everything between these positions is cut
	var out []registry.Content
	var at int64
	for _, c := range parts {
		begin, end := at, at+o.partSize(c)
		at = end
		switch {
		case end <= head || begin >= tail || o.texts && c.Data != nil:
		case c.Data != nil:
			c = registry.TextContent(o.file(ctx, tool, fmt.Sprintf("%s %s", c.Type, c.MIMEType), string(c.Data)))
		case begin >= head && end <= tail:
			continue
		default:
			c.Text = cutText(c.Text, max(head-begin, 0), max(end-max(tail, begin), 0))
		}
		out = append(out, c)
	}
	return out
}

// cutText keeps at most the given numbers of bytes of the beginning and the end,
// and says between them how much is missing. It cuts between lines unless they are
// too long, and then between characters.
func cutText(s string, head, tail int64) string {
	if int64(len(s)) <= head+tail {
		return s
	}
	h, t := cutPoints(s, head, tail)
	return fmt.Sprintf("%s\n[… cut: %d of %d bytes …]\n%s", s[:h], t-h, len(s), s[t:])
}

// cutPoints returns the positions between which a text that is too long is cut.
func cutPoints(s string, head, tail int64) (h, t int) {
	h, t = len(text.Head(s, int(head))), len(s)-len(text.Tail(s, int(tail)))
	if line := strings.LastIndexByte(s[:h], '\n'); line > h/2 {
		h = line
	}
	if line := strings.IndexByte(s[t:], '\n'); line >= 0 && line < (len(s)-t)/2 {
		t += line + 1
	}
	return h, t
}

// beforeOutput is the maximum number of lines that tools write before the output of a program. The
// file of a streamed output does not contain them.
const beforeOutput = 5

// longLine is how many characters of a line read_file shows.
const longLine = 2000

// readOn says from which line of the file a model can continue reading; before is the number of
// lines that the file may lack at the beginning.
func (o Output) readOn(parts []registry.Content, before int) string {
	if !o.texts {
		return ""
	}
	var b strings.Builder
	for _, c := range parts {
		b.WriteString(c.Text)
	}
	whole := b.String()
	head, tail := o.ends()
	h, t := cutPoints(whole, head, tail)
	for line := range strings.SplitSeq(whole[h:t], "\n") {
		if utf8.RuneCountInString(line) > longLine {
			return fmt.Sprintf(
				"; read_file shows %d characters of a line, so read on with a program such as cut or jq", longLine)
		}
	}
	return fmt.Sprintf("; to read on: read_file with this file_path and offset %d",
		max(1, 1+strings.Count(whole[:h], "\n")-before))
}

func addNote(parts []registry.Content, text string) []registry.Content {
	if text == "" {
		return parts
	}
	if n := len(parts); n > 0 && parts[n-1].Type == registry.ContentText {
		last := &parts[n-1]
		if last.Text != "" && !strings.HasSuffix(last.Text, "\n") {
			last.Text += "\n"
		}
		last.Text += text
		return parts
	}
	return append(parts, registry.TextContent(text))
}

func (o Output) saveText(ctx context.Context, tool string, parts []registry.Content) (note, path string) {
	s := o.spill(ctx, tool)
	for _, c := range parts {
		s.add(c.Text)
	}
	if s.total == 0 {
		return "", ""
	}
	note = s.finish("output")
	if s.err == nil {
		note = strings.TrimSuffix(note, "]") + o.readOn(parts, 0) + "]"
	}
	return note, s.path
}

func (o Output) file(ctx context.Context, tool, what, data string) string {
	s := o.spill(ctx, tool)
	s.add(data)
	return s.finish(what)
}

// Limits on the files with complete outputs.
const (
	spillAge   = 7 * 24 * time.Hour
	spillFiles = 100
)

// spill collects the output of a call, first in memory and then in a file. Its
// methods are safe for concurrent use, because tools may call Emit concurrently.
type spill struct {
	limit   int64 // output up to this size is not written to a file
	largest int64 // maximum size of the file
	dir     func() (*state.Dir, error)
	tool    string

	mu       sync.Mutex
	chunks   []string
	buffered int64 // bytes in chunks
	total    int64
	written  int64
	file     *os.File
	path     string
	err      error
	closed   bool
}

// maxBuffered is the size up to which output is kept in memory before a file is
// created. No file is created for a call within its limit.
const maxBuffered = 1 << 20

func (s *spill) add(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // an abandoned tool may still emit
		return
	}
	s.total += int64(len(part))
	if s.file == nil && s.buffered+int64(len(part)) <= min(s.limit, maxBuffered) {
		s.chunks = append(s.chunks, part)
		s.buffered += int64(len(part))
		return
	}
	s.flush()
	s.write(part)
}

// flush writes the buffered output to the file.
func (s *spill) flush() {
	if s.file == nil && s.err == nil {
		s.open()
	}
	for _, c := range s.chunks {
		s.write(c)
	}
	s.chunks, s.buffered = nil, 0
}

func (s *spill) open() {
	dir, err := s.dir()
	if err != nil {
		s.err = err
		return
	}
	if s.err = dir.Sweep(time.Now(), state.Bounds{Age: spillAge, Files: spillFiles - 1}); s.err != nil {
		return
	}
	name := fmt.Sprintf("%s-%s.txt", registry.ValidName(s.tool), rand.Text()[:10])
	if s.file, s.err = dir.Create(name); s.err == nil {
		s.path = s.file.Name()
	}
}

// write appends to the file, up to its maximum size.
func (s *spill) write(part string) {
	if s.file == nil || s.err != nil {
		return
	}
	room := s.largest - s.written
	if int64(len(part)) > room {
		part = text.Head(part, int(max(room, 0)))
		s.largest = s.written + int64(len(part)) // what follows does not continue it
	}
	n, err := s.file.WriteString(part)
	s.written += int64(n)
	s.err = err
}

// finish writes the rest of the output and returns a note with the path of the
// file.
func (s *spill) finish(what string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.flush()
	if s.file != nil {
		if err := s.file.Close(); s.err == nil {
			s.err = err
		}
	}
	return fileNote(what, s.path, s.written, s.total, s.err)
}

// discard drops all output and removes the file.
func (s *spill) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.chunks = true, nil
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.path)
	}
}

// fileNote returns the note that names the file with the complete output.
func fileNote(what string, path string, written, total int64, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("[the %s of %d bytes is cut, and the whole could not be saved: %v]", what, total, err)
	case written < total:
		return fmt.Sprintf("[the %s is cut; the first %d of the %d bytes that were read (limits.spill) are in %s]",
			what, written, total, filepath.ToSlash(path))
	}
	return fmt.Sprintf("[the %s is cut; all %d bytes that were read are in %s]", what, total, filepath.ToSlash(path))
}

// Save writes a tool's result to a file in the folder of cut outputs, and returns
// its path.
func (o Output) Save(ctx context.Context, tool string, data []byte) (path string, err error) {
	s := o.spill(ctx, tool)
	s.add(string(data))
	s.finish("")
	return filepath.ToSlash(s.path), s.err
}
