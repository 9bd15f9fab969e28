package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
)

const maxNotebook = 20 << 20 // bytes of a Jupyter notebook that is shown as cells

// errNotebook is a file that is no notebook of a format known here.
var errNotebook = errors.New("not a notebook of format 4")

// notebookCell is a cell of a Jupyter notebook (nbformat 4).
type notebookCell struct {
	Type        string                                `json:"cell_type"`
	Source      joined                                `json:"source"`
	Run         *int64                                `json:"execution_count"`
	Outputs     json.RawMessage                       `json:"outputs"`
	Attachments map[string]map[string]json.RawMessage `json:"attachments"`
}

type notebookOutput struct {
	Type      string                     `json:"output_type"`
	Name      string                     `json:"name"`
	Text      joined                     `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	ErrorName string                     `json:"ename"`
	Error     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// joined is a text that JSON may hold as one string or as a list of lines.
type joined string

func (j *joined) UnmarshalJSON(data []byte) error {
	var text string
	if data[0] != '[' {
		err := json.Unmarshal(data, &text)
		*j = joined(text)
		return err
	}
	var parts []string
	err := json.Unmarshal(data, &parts)
	*j = joined(strings.Join(parts, ""))
	return err
}

func isNotebook(name string) bool { return strings.EqualFold(path.Ext(name), ".ipynb") }

// openNotebook returns the text of a notebook and a note that says so. What
// cannot be shown as cells comes back as it is, with a note that says why.
func openNotebook(in *bufio.Reader) (text *bufio.Reader, note string, asItIs bool, err error) {
	data, err := io.ReadAll(io.LimitReader(in, maxNotebook+1))
	if err != nil {
		return nil, "", false, err
	}
	plain := func(why string) (*bufio.Reader, string, bool, error) {
		return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(data), in), readBuffer), "shown as it is: " + why, true, nil
	}
	if len(data) > maxNotebook {
		return plain("the notebook is larger than " + tool.Size(maxNotebook))
	}
	cells, err := notebookCells(data)
	if err != nil {
		return plain(errNotebook.Error())
	}
	// Text made of cells as it is read takes no more memory than its largest
	// cell. It is read once before, to see that all of it can be.
	trial := newNotebookText(cells)
	if _, err := io.Copy(io.Discard, trial); err != nil {
		return plain(errNotebook.Error())
	}
	note = "a notebook of " + tool.Count(trial.cells, "cell") + ", shown as text"
	return bufio.NewReaderSize(newNotebookText(cells), readBuffer), note, false, nil
}

// notebookCells returns the list of cells of a notebook. The error wraps
// errNotebook.
func notebookCells(data []byte) (json.RawMessage, error) {
	var book struct {
		Format int             `json:"nbformat"`
		Cells  json.RawMessage `json:"cells"`
	}
	if err := json.Unmarshal(data, &book); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotebook, err)
	}
	if book.Format != 4 || len(book.Cells) == 0 || book.Cells[0] != '[' {
		return nil, errNotebook
	}
	return book.Cells, nil
}

// notebookText renders a notebook while it is read: its cells in order, each
// with what it printed. Errors wrap errNotebook.
type notebookText struct {
	list  *json.Decoder
	cells int // rendered so far
	ready bytes.Buffer
	ended error
}

func newNotebookText(cells json.RawMessage) *notebookText {
	n := &notebookText{list: json.NewDecoder(bytes.NewReader(cells))}
	_, n.ended = n.list.Token() // the bracket
	return n
}

// Read implements io.Reader.
func (n *notebookText) Read(p []byte) (int, error) {
	for n.ready.Len() == 0 {
		if n.ended != nil {
			return 0, n.ended
		}
		n.render()
	}
	return n.ready.Read(p)
}

// render makes the text of the next cells ready.
func (n *notebookText) render() {
	for n.ready.Len() < readBuffer {
		if !n.list.More() {
			n.ended = io.EOF
			if n.cells == 0 {
				n.ready.WriteString("(no cells)\n")
			}
			return
		}
		var c notebookCell
		err := n.list.Decode(&c)
		if err == nil {
			n.cells++
			err = c.write(&n.ready, n.cells)
		}
		if err != nil {
			n.ended = fmt.Errorf("%w: %w", errNotebook, err)
			return
		}
	}
}

// each decodes the elements of a JSON list one after the other, so that a list
// of a million empty ones takes no more memory than its text.
func each[T any](list json.RawMessage, do func(T) error) error {
	in := json.NewDecoder(bytes.NewReader(list))
	if open, err := in.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(err, errors.New("not a list"))
	}
	for in.More() {
		var element T
		if err := in.Decode(&element); err != nil {
			return err
		}
		if err := do(element); err != nil {
			return err
		}
	}
	return nil
}

func (c *notebookCell) write(b *bytes.Buffer, index int) error {
	kind := tool.OneLine(c.Type)
	if c.Run != nil {
		kind += fmt.Sprintf(", run %d", *c.Run)
	}
	fmt.Fprintf(b, "--- cell %d (%s) ---\n", index, kind)
	writeText(b, string(c.Source))
	for _, name := range sortedKeys(c.Attachments) {
		for _, mime := range sortedKeys(c.Attachments[name]) {
			fmt.Fprintf(b, "[attachment %s: %s]\n", tool.OneLine(name), mediaLabel(mime, c.Attachments[name][mime]))
		}
	}
	if len(c.Outputs) == 0 || string(c.Outputs) == "null" {
		return nil
	}
	return each(c.Outputs, func(o notebookOutput) error {
		o.write(b, index)
		return nil
	})
}

func (o *notebookOutput) write(b *bytes.Buffer, index int) {
	kind := o.Type
	if o.Type == "stream" {
		kind = o.Name
	}
	fmt.Fprintf(b, "--- output of cell %d (%s) ---\n", index, tool.OneLine(kind))
	switch o.Type {
	case "stream":
		writeText(b, printed(string(o.Text)))
	case "error":
		writeText(b, ansi.Strip(strings.Join(o.Traceback, "\n")))
		if len(o.Traceback) == 0 {
			writeText(b, ansi.Strip(o.ErrorName+": "+o.Error))
		}
	default:
		o.writeData(b)
	}
}

// writeData shows the readable form of what a cell gave back, and names the
// others where they say more: a table's HTML repeats its text, an image does not.
func (o *notebookOutput) writeData(b *bytes.Buffer) {
	shown := ""
	for _, mime := range []string{"text/plain", "text/markdown", "text/latex", "text/html", "application/json"} {
		if raw, ok := o.Data[mime]; ok {
			shown = mime
			writeText(b, ansi.Strip(dataText(raw)))
			break
		}
	}
	for _, mime := range sortedKeys(o.Data) {
		if mime != shown && !strings.HasPrefix(mime, "text/") {
			fmt.Fprintf(b, "[%s]\n", mediaLabel(mime, o.Data[mime]))
		}
	}
}

// dataText is a text of an output, or the JSON that stands in its place.
func dataText(raw json.RawMessage) string {
	var text joined
	if err := json.Unmarshal(raw, &text); err != nil {
		return string(raw)
	}
	return string(text)
}

// mediaLabel names what is not shown. Images are kept in base64, but for SVG.
func mediaLabel(mime string, raw json.RawMessage) string {
	size := len(dataText(raw))
	if strings.HasPrefix(mime, "image/") && mime != "image/svg+xml" {
		size = size / 4 * 3
	}
	return tool.OneLine(mime) + ", " + tool.Size(int64(size)) + ", not shown"
}

// printed is what stays of an output on a terminal: without colours, and of a
// progress bar its last state.
func printed(text string) string {
	text = ansi.Strip(strings.ReplaceAll(text, "\r\n", "\n"))
	if !strings.Contains(text, "\r") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.CutSuffix(line, "\n")
		body = strings.TrimRight(body, "\r")
		b.WriteString(body[strings.LastIndexByte(body, '\r')+1:])
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func writeText(b *bytes.Buffer, text string) {
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// readable is the text of a file in its encoding, a note on what it became, and
// whether it is the file's own bytes.
func readable(name string, e textfile.Encoding, in *bufio.Reader) (text *bufio.Reader, note string, asItIs bool, err error) {
	text = e.Reader(in)
	if !isNotebook(name) || e != textfile.UTF8 && e != textfile.UTF8WithBOM {
		return text, "", text == in, nil
	}
	return openNotebook(text)
}
