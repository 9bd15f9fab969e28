package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/terminal"
)

// callDocument is the JSON of one call (spec section 3).
type callDocument struct {
	Tool          string                 `json:"tool"`
	OK            bool                   `json:"ok"`
	IsError       bool                   `json:"isError,omitempty"`
	ErrorCategory registry.ErrorCategory `json:"errorCategory,omitempty"`
	Summary       string                 `json:"summary,omitempty"`
	LLMContent    any                    `json:"llmContent"`
	ReturnDisplay *registry.Display      `json:"returnDisplay,omitempty"`
	Structured    json.RawMessage        `json:"structuredContent,omitempty"`
	Meta          json.RawMessage        `json:"_meta,omitempty"`
	Locations     []registry.Location    `json:"locations,omitempty"`
	DurationMs    int64                  `json:"durationMs"`
	Truncated     bool                   `json:"truncated,omitempty"`
	Cached        bool                   `json:"cached,omitempty"`
	Attempts      int                    `json:"attempts,omitempty"` // where more than one
}

func newCallDocument(t *registry.Tool, r registry.Result) callDocument {
	d := callDocument{
		Tool: t.Name, OK: !r.IsError, IsError: r.IsError, ErrorCategory: r.ErrorCategory, Summary: r.Summary,
		LLMContent: llmContent(r.Content), Structured: r.Structured, Meta: r.Meta, Locations: r.Locations,
		DurationMs: r.Duration.Milliseconds(), Truncated: r.Truncated, Cached: r.Cached, Attempts: r.Attempts,
	}
	if !r.Display.IsZero() {
		d.ReturnDisplay = &r.Display
	}
	return d
}

// llmContent is a string where all there is is one plain text, else the parts.
func llmContent(parts []registry.Content) any {
	if len(parts) == 0 {
		return ""
	}
	if c := parts[0]; len(parts) == 1 && c.Type == registry.ContentText && c.Annotations == nil && c.Meta == nil {
		return c.Text
	}
	return parts
}

func (a *app) printResult(ctx context.Context, o *callOptions, t *registry.Tool, r registry.Result) error {
	if o.outputDir == "" {
		return a.writeResult(ctx, o, t, r, 0)
	}
	saved, err := saveParts(o.outputDir, t.Name, r.Content)
	// The tool has run: what it gave is printed, whatever became of the files.
	return errors.Join(a.writeResult(ctx, o, t, r, saved), err)
}

func (a *app) writeResult(ctx context.Context, o *callOptions, t *registry.Tool, r registry.Result, saved int) error {
	switch {
	case a.globals.JSON:
		return a.printJSON(newCallDocument(t, r))
	case o.raw:
		return writeRaw(a.out, r.Content)
	case saved == 0 && (a.outTTY || a.color(false)):
		return a.show(ctx, t, r)
	case a.outTTY:
		_, err := io.WriteString(a.out, terminal.Visible(contentText(r)))
		return err
	}
	return writeContent(a.out, r)
}

// writeRaw writes the bytes of every part, nothing between them.
func writeRaw(w io.Writer, parts []registry.Content) error {
	for _, c := range parts {
		data := c.Data
		if data == nil {
			data = []byte(c.Text)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// contentText is what a program reads of a result: the texts, and a line that
// names each part that is no text.
func contentText(r registry.Result) string {
	var b strings.Builder
	_ = writeContent(&b, r) // a Builder takes everything
	return b.String()
}

// writeContent writes what contentText is, piece by piece: a result may be large.
func writeContent(w io.Writer, r registry.Result) error {
	out := bufio.NewWriterSize(w, writeSize)
	line := func(text string) {
		for len(text) > writeSize { // one large string would be copied whole
			_, _ = out.WriteString(text[:writeSize])
			text = text[writeSize:]
		}
		_, _ = out.WriteString(endLine(text)) // Flush gives the error
	}
	for _, c := range r.Content {
		line(partText(c))
	}
	if len(r.Content) == 0 && len(r.Structured) > 0 {
		line(string(r.Structured))
	}
	return out.Flush()
}

const writeSize = 64 << 10

func partText(c registry.Content) string {
	switch c.Type {
	case registry.ContentText:
		return c.Text
	case registry.ContentResourceLink:
		return fmt.Sprintf("[resource_link %s %s]", c.Name, c.URI)
	case registry.ContentResource:
		if c.Data == nil {
			return c.Text
		}
	}
	name := c.URI
	if name != "" {
		name += " "
	}
	return fmt.Sprintf("[%s %s%s, %d bytes; --output DIR saves it, --raw writes it]", c.Type, name, c.MIMEType, len(c.Data))
}

func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// saveParts writes every image, audio and resource into dir, puts the path in its
// place and returns how many these were.
func saveParts(dir, tool string, parts []registry.Content) (saved int, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, &usageError{err: fmt.Errorf("--output: %w", err)}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, &usageError{err: fmt.Errorf("--output: %w", err)}
	}
	defer root.Close()
	for i := range parts {
		c := &parts[i]
		data, kind := c.Data, c.MIMEType
		if data == nil && c.Type == registry.ContentResource {
			data, kind = []byte(c.Text), cmp.Or(kind, "text/plain")
		}
		if data == nil {
			continue
		}
		name, err := createPart(root, fmt.Sprintf("%s-%d", tool, i+1), extension(kind), data)
		if err != nil {
			return saved, fmt.Errorf("--output: %w", err) // the rest stays in place
		}
		*c = registry.TextContent(filepath.Join(dir, name))
		saved++
	}
	return saved, nil
}

// createPart writes data to the first name that is free.
func createPart(root *os.Root, base, ext string, data []byte) (string, error) {
	for n := 0; ; n++ {
		name := base + ext
		if n > 0 {
			name = fmt.Sprintf("%s.%d%s", base, n, ext)
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(f, bytes.NewReader(data))
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			_ = root.Remove(name) // half an image is none
		}
		return name, err
	}
}

// extension is the usual file ending of a media type, ".bin" where there is
// none.
func extension(mediaType string) string {
	switch mediaType {
	case "image/jpeg":
		return ".jpg"
	case "audio/mpeg":
		return ".mp3"
	case "text/plain":
		return ".txt"
	case "text/html":
		return ".html"
	case "text/markdown":
		return ".md"
	}
	if found, err := mime.ExtensionsByType(mediaType); err == nil && len(found) > 0 {
		return found[0]
	}
	return ".bin"
}
