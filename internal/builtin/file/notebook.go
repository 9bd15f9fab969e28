package file

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/toolreg/toolreg/internal/builtin/tool"
)

var errNotebook = errors.New("not a notebook of format 4")

// notebookPart is a cell of a Jupyter notebook, or an output of one.
type notebookPart struct {
	Type      string                     `json:"cell_type"`
	Source    joined                     `json:"source"`
	Run       json.Number                `json:"execution_count"`
	Outputs   json.RawMessage            `json:"outputs"`
	Kind      string                     `json:"output_type"`
	Name      string                     `json:"name"` // of a stream output
	Text      joined                     `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Traceback []string                   `json:"traceback"`
	Error     string                     `json:"ename"`
	Value     string                     `json:"evalue"` // the message of an error output
}

// joined is a text that is encoded in JSON as one string or as a list of lines.
type joined string

func (j *joined) UnmarshalJSON(data []byte) (err error) {
	var lines []string
	if err = json.Unmarshal(data, (*string)(j)); err != nil && json.Unmarshal(data, &lines) == nil {
		*j, err = joined(strings.Join(lines, "")), nil
	}
	return err
}

// notebookText formats the cells and their output. Its only error is
// errNotebook.
func notebookText(data []byte) (text []byte, cells int, err error) {
	var book struct{ NBFormat, Cells json.RawMessage }
	if json.Unmarshal(data, &book) != nil || string(book.NBFormat) != "4" {
		return nil, 0, errNotebook
	}
	err = eachPart(book.Cells, func(c *notebookPart) error {
		cells++
		kind := strings.TrimSuffix(tool.OneLine(c.Type)+", run "+string(c.Run), ", run ")
		text = fmt.Appendf(text, "--- cell %d (%s) ---\n%s", cells, kind, withFinalNewline(string(c.Source)))
		return eachPart(c.Outputs, func(o *notebookPart) error {
			text = fmt.Appendf(text, "--- output of cell %d (%s) ---\n%s",
				cells, tool.OneLine(cmp.Or(o.Name, o.Kind)), o.output())
			return nil
		})
	})
	if cells == 0 && err == nil {
		text = []byte("(no cells)\n")
	}
	return text, cells, err
}

// eachPart decodes a list element by element, so that millions of elements take
// little memory.
func eachPart(list json.RawMessage, do func(*notebookPart) error) error {
	parts := json.NewDecoder(bytes.NewReader(list))
	if open, _ := parts.Token(); open == nil {
		return nil
	} else if open != json.Delim('[') {
		return errNotebook
	}
	for parts.More() {
		part := &notebookPart{}
		if parts.Decode(part) != nil || do(part) != nil {
			return errNotebook
		}
	}
	return nil
}

// output returns the text of an output as a terminal would show it.
func (o *notebookPart) output() string {
	text, others := string(o.Text)+strings.Join(o.Traceback, "\n"), ""
	if text == "" && o.Error != "" {
		text = o.Error + ": " + o.Value
	}
	for _, mime := range slices.Sorted(maps.Keys(o.Data)) {
		var form joined
		_ = json.Unmarshal(o.Data[mime], &form) // only the type of other output is shown
		if isText := strings.HasPrefix(mime, "text/"); isText && (text == "" || mime == "text/plain") {
			text = string(form)
		} else if !isText {
			size := len(form) / 4 * 3 // decoded from base64
			if size == 0 {
				size = len(o.Data[mime]) // size of the JSON
			}
			others += fmt.Sprintf("[%s, %s, not shown]\n", tool.OneLine(mime), tool.Size(int64(size)))
		}
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return withFinalNewline(withoutEscapes(strings.Join(lines, "\n"))) + others
}

// withoutEscapes removes terminal color sequences.
func withoutEscapes(s string) string {
	if !strings.Contains(s, "\x1b") {
		return s
	}
	var b strings.Builder
	parts := displaywidth.Options{ControlSequences: true}.StringGraphemes(s)
	for parts.Next() {
		if part := parts.Value(); part[0] != '\x1b' {
			b.WriteString(part)
		}
	}
	return b.String()
}
