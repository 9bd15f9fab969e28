package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

// WriteRaw writes the bytes of every part to w, without separators.
func WriteRaw(w io.Writer, parts []registry.Content) error {
	out := bufio.NewWriterSize(w, chunk) // a large text would be copied as a whole
	for _, c := range parts {
		if c.Data != nil {
			_, _ = out.Write(c.Data) // Flush returns the error
		} else {
			_, _ = out.WriteString(c.Text)
		}
	}
	return out.Flush()
}

// ResultText returns a result as text for a program: text parts as they are, and a line
// describing each other part.
func ResultText(r registry.Result) string {
	var b strings.Builder
	_ = WriteResult(&b, r) // a Builder never fails
	return b.String()
}

// WriteResult writes what [ResultText] returns, in chunks, because a result may be large.
func WriteResult(w io.Writer, r registry.Result) error {
	out := bufio.NewWriterSize(w, chunk)
	line := func(text string) {
		for len(text) > chunk { // a large string would be copied as a whole
			_, _ = out.WriteString(text[:chunk])
			text = text[chunk:]
		}
		_, _ = out.WriteString(ui.EndLine(text)) // Flush returns the error
	}
	for _, c := range r.Content {
		line(PartText(c))
	}
	if len(r.Content) == 0 && len(r.Structured) > 0 {
		line(string(r.Structured))
	}
	return out.Flush()
}

const chunk = 64 << 10

// PartText returns a part of a result as text: the text itself, or for other parts a
// line in brackets that describes them.
func PartText(c registry.Content) string {
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
	words := []string{string(c.Type), c.URI, c.MIMEType}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	return fmt.Sprintf("[%s, %d bytes; --output DIR saves it, --raw writes it]", strings.Join(words, " "), len(c.Data))
}

// OpenOutput opens the folder of --output, which is created if it does not exist.
func OpenOutput(dir string) (root *os.Root, err error) {
	if err = os.MkdirAll(dir, 0o777); err == nil {
		root, err = os.OpenRoot(dir)
	}
	if err != nil {
		return nil, &UsageError{Err: fmt.Errorf("--output: %w", withName(dir, err)), Hint: "name a folder that can be created"}
	}
	return root, nil
}

// SaveParts writes every image, audio and resource part to a file in dir, replaces the
// part by the path of the file, and returns the number of saved parts.
func SaveParts(dir, tool string, parts []registry.Content) (saved int, err error) {
	root, err := OpenOutput(dir)
	if err != nil {
		return 0, err
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
		name, err := CreateFile(root, fmt.Sprintf("%s-%d", tool, i+1), Extension(kind), data)
		if err != nil {
			return saved, fmt.Errorf("--output: %w", err) // keep the other parts
		}
		*c = registry.TextContent(filepath.Join(dir, name))
		saved++
	}
	return saved, nil
}

// CreateFile writes data to a new file named base plus ext, with a number added if that
// name is taken, and returns the name.
func CreateFile(root *os.Root, base, ext string, data []byte) (string, error) {
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
			_ = root.Remove(name) // remove the incomplete file
		}
		return name, err
	}
}

// Extension returns the usual file extension of a media type; ".bin" if there
// is none.
func Extension(mediaType string) string {
	if base, _, err := mime.ParseMediaType(mediaType); err == nil {
		mediaType = base
	}
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

// PartBytes returns the bytes of a part of any type.
func PartBytes(c registry.Content) []byte {
	if c.Data != nil {
		return c.Data
	}
	return []byte(c.Text)
}
