package middleware

import (
	"context"
	"fmt"
	"strings"

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
		s := o.spill(name)
		call.Keep = o.Limit - min(o.Limit/4, markRoom)
		call.Spill = func(p []byte) { s.add(string(p)) }
		r, err := run(ctx, call)
		return o.limit(r, s), err
	}
	return t
}

func (o Output) spill(tool string) *spill {
	return &spill{limit: o.Limit, largest: o.Spill, dir: o.Dir, tool: tool}
}

// limit cuts a result that is too large, and adds the names of the files with all
// of it.
func (o Output) limit(r registry.Result, s *spill) registry.Result {
	size := contentSize(r.Content)
	streamed := s.total > 0 && (r.Truncated || s.total > o.Limit)
	if !streamed && size <= o.Limit && int64(len(r.Structured)) <= o.Limit && int64(len(r.Display.Text)) <= o.Limit {
		s.discard()
		return r
	}
	var notes []string
	if streamed {
		notes = append(notes, s.finish("output"))
	} else {
		s.discard()
	}
	if size > o.Limit {
		if !streamed {
			notes = append(notes, o.whole(s.tool, r.Content))
		}
		r.Content = o.cut(r.Content, size, s.tool)
	}
	if int64(len(r.Structured)) > o.Limit {
		notes = append(notes, o.file(s.tool, "structured result", string(r.Structured)))
		r.Structured = nil
	}
	r.Display.Text = cutText(r.Display.Text, o.Limit/2, o.Limit-o.Limit/2)
	r.Truncated = true
	r.Content = addNote(r.Content, strings.Join(notes, "\n"))
	return r
}

func contentSize(parts []registry.Content) int64 {
	var n int64
	for _, c := range parts {
		n += partSize(c)
	}
	return n
}

func partSize(c registry.Content) int64 { return int64(len(c.Text) + len(c.Data)) }

// cut keeps the beginning and the end of a result, each up to half of the limit.
// Parts that are not text are kept completely or written to their own files.
func (o Output) cut(parts []registry.Content, size int64, tool string) []registry.Content {
	head, tail := o.Limit/2, size-(o.Limit-o.Limit/2) // positions between which everything is cut
	var out []registry.Content
	var at int64
	for _, c := range parts {
		begin, end := at, at+partSize(c)
		at = end
		switch {
		case end <= head || begin >= tail:
		case c.Data != nil:
			c = registry.TextContent(o.file(tool, fmt.Sprintf("%s %s", c.Type, c.MIMEType), string(c.Data)))
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
	h, t := len(text.Head(s, int(head))), len(s)-len(text.Tail(s, int(tail)))
	if line := strings.LastIndexByte(s[:h], '\n'); line > h/2 {
		h = line
	}
	if line := strings.IndexByte(s[t:], '\n'); line >= 0 && line < (len(s)-t)/2 {
		t += line + 1
	}
	return fmt.Sprintf("%s\n[… cut: %d of %d bytes …]\n%s", s[:h], t-h, len(s), s[t:])
}

// addNote adds a note to the last text.
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

// whole writes all text to a file.
func (o Output) whole(tool string, parts []registry.Content) string {
	s := o.spill(tool)
	for _, c := range parts {
		s.add(c.Text)
	}
	if s.total == 0 {
		return ""
	}
	return s.finish("output")
}

func (o Output) file(tool, what, data string) string {
	s := o.spill(tool)
	s.add(data)
	return s.finish(what)
}
