package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	readMaxColumns = 2000    // characters per line
	readMaxText    = 8 << 20 // bytes of text in one result
)

// maxCountedBytes limits how much is read after the excerpt to count lines: an
// amount that takes a few milliseconds.
const maxCountedBytes = 8 << 20

// enoughLines is the minimum number of lines needed to estimate the total.
const enoughLines = 100

// excerpt collects some lines of a text. Its memory use does not depend on the
// length of the text.
type excerpt struct {
	first, limit int // counted in lines, from 1
	encoding     textfile.Encoding
	size         int64  // of the file in bytes; 0 if the text was converted
	form         string // what the text was converted from, or ""

	text    strings.Builder
	last    int               // the last line collected
	total   int               // lines counted so far
	unsure  bool              // there are more lines than total
	about   int               // if unsure, the estimated number of lines; 0 means unknown
	long    int               // lines that were cut
	cut     int               // the first of them
	cutAt   int               // the byte of its text at which it was cut, from 1
	ended   bool              // the last line collected has a line break
	tooMuch bool              // the text exceeds readMaxText
	foreign bool              // a line is not valid UTF-8
	found   textfile.Encoding // of such a line
	native  bool              // a line is valid UTF-8 with non-ASCII characters
}

func (x *excerpt) read(ctx context.Context, in *bufio.Reader) error {
	passed, err := x.skip(ctx, in)
	for err == nil {
		if x.total%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if x.last-x.first+1 >= x.limit || x.tooMuch {
			return x.countRest(ctx, in, passed)
		}
		var n int64
		if n, err = x.line(in); n == 0 {
			break
		}
		passed += n
	}
	return err
}

// skip skips the lines before the first one wanted, and returns the number of
// bytes skipped.
func (x *excerpt) skip(ctx context.Context, in *bufio.Reader) (passed int64, err error) {
	open := false // there is text after the last line break
	for x.total+1 < x.first {
		if err := ctx.Err(); err != nil {
			return passed, err
		}
		_, err := in.Peek(1)
		text, _ := in.Peek(in.Buffered())
		if len(text) == 0 {
			if open {
				x.total++
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return passed, err
		}
		if n := bytes.Count(text, newline); x.total+n+1 < x.first {
			x.total += n
		} else {
			text = text[:afterLines(text, x.first-1-x.total)]
			x.total = x.first - 1
		}
		open = text[len(text)-1] != '\n'
		passed += int64(len(text))
		_, _ = in.Discard(len(text)) // cannot fail: the text is in the buffer
	}
	return passed, nil
}

var newline = []byte{'\n'}

// afterLines returns the offset after the n-th line break of a text that has at
// least n.
func afterLines(text []byte, n int) int {
	at := 0
	for ; n > 0; n-- {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	return at
}

// line reads and keeps one line, and returns its number of bytes, which is 0 at
// the end.
func (x *excerpt) line(in *bufio.Reader) (size int64, err error) {
	const keep = readMaxColumns * utf8.UTFMax
	var kept []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(kept) <= keep {
			kept = append(kept, part...)
		}
		size += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && size == 0:
			return 0, nil
		case err != nil && !errors.Is(err, io.EOF):
			return size, err
		}
		x.total++
		x.addLine(kept, err == nil, size > int64(len(kept)))
		return size, nil
	}
}

// addLine keeps a line; cut means that it is longer than the given part.
func (x *excerpt) addLine(line []byte, ended, cut bool) {
	if ended && !cut {
		line = line[:len(line)-1]
	}
	if cut { // it may end in the middle of a character
		line, _ = text.WholeRunes(line)
	}
	text := x.decode(line)
	if i := tool.RuneIndex(text, readMaxColumns); i < len(text) || cut {
		text = text[:i] + "... [truncated]"
		if x.long++; x.long == 1 {
			x.cut, x.cutAt = x.total, i+1
		}
	}
	if x.last > 0 {
		x.text.WriteByte('\n')
	}
	x.text.WriteString(text)
	x.last, x.ended = x.total, ended
	x.tooMuch = x.text.Len() > readMaxText
}

// decode converts a line to UTF-8. A file detected as ASCII may still turn out
// to have another encoding.
func (x *excerpt) decode(line []byte) string {
	if text := string(line); utf8.ValidString(text) {
		x.native = x.native || textfile.BeyondASCII(text)
		return text
	}
	x.foreign = true
	switch x.encoding {
	case textfile.UTF8:
		text, e := textfile.Line(line)
		x.found = e
		return text
	case textfile.Windows1252, textfile.Unknown:
		x.found = x.encoding
		return textfile.FromWindows1252(line)
	}
	return text.Valid(line)
}

// countRest counts the lines after the excerpt if that is quick, and otherwise
// estimates their number. passed is the number of bytes already read.
func (x *excerpt) countRest(ctx context.Context, in io.Reader, passed int64) error {
	if x.size-passed > maxCountedBytes {
		x.unsure = true
		if x.total >= enoughLines {
			x.about = int(float64(x.total) / float64(passed) * float64(x.size))
		}
		return nil
	}
	buf := make([]byte, 256<<10)
	open := false // there is text after the last line break
	for seen := 0; ; {
		n, err := in.Read(buf)
		if n > 0 {
			x.total += bytes.Count(buf[:n], newline)
			open = buf[n-1] != '\n'
		}
		switch {
		case errors.Is(err, io.EOF):
			if open {
				x.total++
			}
			return nil
		case err != nil:
			return err
		}
		if seen += n; seen > maxCountedBytes {
			x.unsure = true
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (x *excerpt) result(rel, name string) registry.Result {
	if x.last == 0 && x.first == 1 {
		return empty(name)
	}
	if x.last == 0 {
		return tool.Mismatch(fmt.Sprintf(
			"offset %d is past the end of %s, which has %s", x.first, text.Quote(name), text.Count(x.total, "line")))
	}
	note := x.note()
	text := x.text.String()
	if x.ended {
		text += "\n"
	}
	r := registry.Result{
		Summary:   fmt.Sprintf("read %s of %s", x.span(), tool.OneLine(rel)),
		Content:   []registry.Content{registry.TextContent(text)},
		Locations: []registry.Location{{Path: rel, Line: x.first}},
		Truncated: x.last < x.total || x.unsure || x.long > 0,
	}
	if note != "" {
		r.Content[0].Text = "[" + note + "]\n" + text
	}
	return r
}

func empty(name string) registry.Result {
	r := registry.TextResult(fmt.Sprintf("%q is empty.", name))
	r.Summary = "the file is empty"
	return r
}

func (x *excerpt) span() string {
	if x.first == x.last {
		return fmt.Sprintf("line %d", x.first)
	}
	return fmt.Sprintf("lines %d-%d", x.first, x.last)
}

// lines describes how many lines there are, as far as known.
func (x *excerpt) lines() string {
	switch {
	case !x.unsure:
		return fmt.Sprintf("%d total lines", x.total)
	case x.about > x.total:
		return fmt.Sprintf("about %d lines (estimated; the file has %s)", rounded(x.about), tool.Size(x.size))
	case x.size > 0:
		return fmt.Sprintf("more than %s (the file has %s)", text.Count(x.total, "line"), tool.Size(x.size))
	}
	return "more than " + text.Count(x.total, "line")
}

// rounded rounds a number down to two significant digits.
func rounded(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// note returns a note if the text is not the whole file or was converted.
func (x *excerpt) note() string {
	var notes []string
	if x.form != "" {
		notes = append(notes, x.form)
	}
	if x.first > 1 || x.last < x.total || x.unsure {
		notes = append(notes, fmt.Sprintf("showing %s of %s", x.span(), x.lines()))
	}
	if x.tooMuch {
		notes = append(notes, "stopped at "+tool.Size(readMaxText)+" of text")
	}
	if x.last < x.total || x.unsure {
		notes = append(notes, fmt.Sprintf("continue with offset %d", x.last+1))
	}
	if x.long > 0 {
		notes = append(notes, fmt.Sprintf("%s cut at %d characters%s",
			text.Count(x.long, "line"), readMaxColumns, x.continuation()))
	}
	switch {
	case x.encoding.Converted():
		notes = append(notes, "decoded from "+x.encoding.String())
	case x.foreign && (x.native || x.encoding == textfile.UTF8WithBOM):
		notes = append(notes, "it contains bytes that are not UTF-8")
	case x.foreign:
		notes = append(notes, "decoded from "+x.found.String())
	}
	return strings.Join(notes, "; ")
}

// continuation says how to get the rest of the first line that was cut.
func (x *excerpt) continuation() string {
	if x.form != "" || x.foreign || x.encoding != textfile.UTF8 {
		return "; grep shows the part around a match"
	}
	return fmt.Sprintf(
		"; grep shows the part around a match, and run_shell_command the rest: sed -n %dp FILE | cut -b %d-",
		x.cut, x.cutAt)
}

// maxNotebook limits the size of a Jupyter notebook that is shown as cells, in
// bytes.
const maxNotebook = 20 << 20

// readable returns the text of a file, decoded from e, a note on how it was
// converted, and whether it is the file's own bytes. A notebook that
// cannot be shown as cells is shown unchanged, with a note that says why.
func readable(name string, e textfile.Encoding,
	in *bufio.Reader) (shown *bufio.Reader, note string, unchanged bool, err error) {
	decoded := e.Reader(in)
	if !strings.EqualFold(path.Ext(name), ".ipynb") || e != textfile.UTF8 && e != textfile.UTF8WithBOM {
		return decoded, "", decoded == in, nil
	}
	data, err := io.ReadAll(io.LimitReader(decoded, maxNotebook+1))
	if err != nil {
		return nil, "", false, err
	}
	book, cells := []byte(nil), 0
	if len(data) > maxNotebook {
		err = errors.New("the notebook is larger than " + tool.Size(maxNotebook))
	} else {
		book, cells, err = notebookText(data)
	}
	if err != nil {
		return bufio.NewReader(io.MultiReader(bytes.NewReader(data), decoded)),
			"shown as it is: " + err.Error(), true, nil
	}
	return bufio.NewReader(bytes.NewReader(book)),
		"a notebook of " + text.Count(cells, "cell") + ", shown as text", false, nil
}
