package file

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

//go:embed write_file.md
var writeFileDescription string

const writeFileSchema = `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to write, relative to the workspace or absolute inside it."},
    "content": {"type": "string", "description": "The whole new content of the file."}
  },
  "required": ["file_path", "content"],
  "additionalProperties": false
}`

type writeFileParams struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

// NewWriteFile returns the tool write_file, which replaces the content of a
// file.
func NewWriteFile(w *workspace.Editor) registry.Tool {
	f := &writeFile{changes{workspace: w}}
	t := tool.New(registry.Definition{
		Name:        "write_file",
		Description: writeFileDescription,
		Category:    registry.CategoryWrite,
		Tags:        []string{"files"},
		Icon:        "pencil",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(writeFileSchema),
		Examples: []registry.Example{
			{Description: "A new file", Params: json.RawMessage(`{"file_path":"docs/notes.md","content":"# Notes\n"}`)},
		},
	}, tool.Handlers[*writeCall]{
		Prepare: f.prepare,
		Run:     f.run,
		Paths:   func(c *writeCall) ([]string, error) { return f.workspace.ChangedPaths(c.FilePath) },
		File:    func(c *writeCall) string { return c.rel },
		Preview: f.preview,
	})
	t.Revise = f.revise
	return t
}

type writeFile struct{ changes }

// writeCall is a call with its params decoded and checked.
type writeCall struct {
	writeFileParams
	rel string
}

func (f *writeFile) prepare(call registry.Call) (*writeCall, error) {
	p, err := tool.Decode[writeFileParams]("write_file", call)
	if err != nil {
		return nil, err
	}
	rel, err := f.workspace.Creatable("write_file", "/file_path", p.FilePath)
	return &writeCall{p, rel}, err
}

// change computes the call's change to the current file.
func (f *writeFile) change(rel, content string) (*fileChange, error) {
	before, err := stateOf(f.workspace.Dir, rel)
	if err != nil {
		return nil, err
	}
	content = withFinalNewline(content)
	if before.tooBig {
		return newChange(rel, before, "", content, "is larger than "+tool.Size(maxChanged), []byte(content)), nil
	}
	old, enc, err := textfile.Decode(before.data)
	if err != nil {
		reason := "contains invalid characters"
		if errors.Is(err, textfile.ErrNotText) {
			reason = textfile.ErrNotText.Error()
		}
		return newChange(rel, before, old, content, reason, []byte(content)), nil
	}
	note, reason := "", ""
	if !strings.Contains(content, "\r\n") && looseView(old).mostlyCRLF() {
		content, note = toCRLF(content), " Its line breaks stay CRLF."
	}
	data := []byte(content)
	switch enc {
	case textfile.UTF8:
	case textfile.UTF8WithBOM:
		content = strings.TrimPrefix(content, textfile.BOM)
		data = []byte(textfile.BOM + content)
	default:
		note += " Its encoding was another one and is UTF-8 now."
		if old == content {
			reason = fmt.Sprintf("is %v", enc) // the bytes change but the text does not
		}
	}
	c := newChange(rel, before, old, content, reason, data)
	c.note = note
	return c, nil
}

// withFinalNewline adds a final line break of the same kind as the others in s,
// if it is missing.
func withFinalNewline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	if i := strings.LastIndexByte(s, '\n'); i > 0 && s[i-1] == '\r' {
		return s + "\r\n"
	}
	return s + "\n"
}

func (f *writeFile) preview(_ context.Context, call registry.Call, p *writeCall) (registry.Preview, error) {
	c, err := f.change(p.rel, p.Content)
	return f.changes.preview(call, p.FilePath, c, err)
}

func (f *writeFile) revise(_ context.Context, call registry.Call, content string) (registry.Call, error) {
	p, err := f.prepare(call)
	if err != nil {
		return call, err
	}
	p.Content = content
	call.Params, err = jsonx.Marshal(p.writeFileParams)
	return call, err
}

func (f *writeFile) run(ctx context.Context, call registry.Call, p *writeCall) (registry.Result, error) {
	return f.workspace.Locked(ctx, func() registry.Result {
		c, err := f.change(p.rel, p.Content)
		if refusal, refused := f.refusal(call, p.FilePath, c, err); refused {
			return refusal
		}
		if c.isUnchanged() {
			r := registry.TextResult(fmt.Sprintf("%q already has this content; nothing was changed.", p.rel))
			r.Summary = "nothing to change"
			r.Locations = []registry.Location{{Path: p.rel}}
			return r
		}
		return f.writeChange(p.FilePath, p.rel, c, "Replaced the content of")
	})
}
