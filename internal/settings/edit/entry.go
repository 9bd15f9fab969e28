package edit

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Entry returns the entry of a server as written in a file, with its comments,
// to be edited in the format of the file. The error wraps [ErrNoServer] or is
// a [*document.Error].
func Entry(file string, data []byte, name string) ([]byte, error) {
	root, path, err := entryOf(file, data, name)
	if err != nil {
		return nil, err
	}
	if document.IsJSON(file) {
		return jsonEntry(data, path)
	}
	if text := yamlEntry(data, path); text != nil {
		return text, nil
	}
	return encodeYAML(toYAML(valueAt(root, path)))
}

// Setting returns the setting that holds a server's entry in a file, such as mcpServers.NAME;
// "" if there is none.
func Setting(file string, data []byte, name string) string {
	_, path, _ := entryOf(file, data, name)
	return strings.Join(path, ".")
}

// EntryJSON returns the entry of a server as JSON. The error wraps [ErrNoServer] or is an
// [*document.Error].
func EntryJSON(file string, data []byte, name string) ([]byte, error) {
	root, path, err := entryOf(file, data, name)
	if err != nil {
		return nil, err
	}
	return valueAt(root, path).JSON(), nil
}

func jsonEntry(data []byte, path []string) ([]byte, error) {
	f, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	v := f.root
	for _, name := range path {
		i := memberOf(&v, name)
		if i < 0 {
			return nil, errOtherWay
		}
		v = v.Value.(*hujson.Object).Members[i].Value
	}
	indent := f.indent(v.StartOffset)
	v.BeforeExtra, v.AfterExtra = nil, nil
	return append(bytes.ReplaceAll(v.Pack(), []byte("\n"+indent), []byte("\n")), '\n'), nil
}

// yamlEntry returns the lines of an entry in block style; nil if it is written
// differently.
func yamlEntry(data []byte, path []string) []byte {
	t, err := parseYAML(data)
	if err != nil {
		return nil
	}
	n, from, to := t.root, 0, len(t.lines)
	for _, name := range path {
		i := keyOf(n, name)
		if i < 0 || !isBlock(n) {
			return nil
		}
		from, to, n = n.Content[i].Line, t.end(n, i, to), n.Content[i+1]
	}
	if !isBlock(n) || n.Line <= from {
		return nil
	}
	var b bytes.Buffer
	for _, line := range t.lines[from:to] {
		b.WriteString(strings.TrimPrefix(strings.TrimRight(line, "\r\n"), strings.Repeat(" ", n.Column-1)) + "\n")
	}
	return b.Bytes()
}

// Rewrite replaces the entry of a server with an edited [Entry].
type Rewrite struct {
	Name string
	Text []byte
}

// Apply makes the change like [Change.Apply]. It keeps the comments in the text if
// the file is JSON or block-style YAML. If the text is invalid, the error is an
// [*document.Error].
func (r Rewrite) Apply(file string, data []byte) ([]byte, error) {
	before, path, err := entryOf(file, data, r.Name)
	if err != nil {
		return nil, err
	}
	doc, problems := document.Parse("entry"+filepath.Ext(file), r.Text)
	if err := document.NewError(problems); err != nil {
		return nil, err
	}
	entry := doc.Root.JSON()
	if err := checkEntry(path[0] == table.APIsKey, r.Name, entry); err != nil {
		return nil, err
	}
	return placed{path: path, value: nodeOf(entry), text: r.Text}.apply(file, data, before)
}
