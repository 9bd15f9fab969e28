package file

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed edit.md
var editDescription string

const editSchema = `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to change, relative to the workspace or absolute inside it."},
    "old_string": {"type": "string", "description": "The text to replace, exactly as it is in the file. Empty: create the file."},
    "new_string": {"type": "string", "description": "The replacement."},
    "expected_replacements": {"type": "integer", "minimum": 1, "description": "How often old_string occurs; all occurrences are replaced. Default: 1."},
    "edits": {
      "type": "array",
      "minItems": 1,
      "maxItems": 1000,
      "description": "Replacements applied in order, all or none; instead of old_string and new_string.",
      "items": {
        "type": "object",
        "properties": {
          "old_string": {"type": "string", "description": "The text to replace, exactly as it is in the file."},
          "new_string": {"type": "string", "description": "The replacement."},
          "expected_replacements": {"type": "integer", "minimum": 1, "description": "How often old_string occurs. Default: 1."}
        },
        "required": ["old_string", "new_string"],
        "additionalProperties": false
      }
    }
  },
  "required": ["file_path"],
  "additionalProperties": false
}`

type editParams struct {
	FilePath string        `json:"file_path"`
	Old      *string       `json:"old_string,omitempty"`
	New      *string       `json:"new_string,omitempty"`
	Expected *tool.Integer `json:"expected_replacements,omitempty"`
	Edits    []replacement `json:"edits,omitempty"`
}

// NewEdit returns the tool edit, which replaces text in a file.
func NewEdit(w *workspace.Editor) registry.Tool {
	e := &edit{changes{workspace: w}}
	t := tool.New(registry.Definition{
		Name:        "edit",
		Description: editDescription,
		Category:    registry.CategoryWrite,
		Tags:        []string{"files"},
		Icon:        "pencil",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(editSchema),
		Examples: []registry.Example{
			{Description: "One replacement", Params: json.RawMessage(
				`{"file_path":"main.go","old_string":"port = 80\n","new_string":"port = 8080\n"}`)},
			{
				Description: "Rename in three places",
				Params: json.RawMessage(
					`{"file_path":"main.go","old_string":"oldName","new_string":"newName","expected_replacements":3}`),
			},
		},
	}, tool.Handlers[*editCall]{
		Prepare: e.prepare,
		Run:     e.run,
		Paths:   func(c *editCall) ([]string, error) { return e.workspace.ChangedPaths(c.FilePath) },
		File:    func(c *editCall) string { return c.rel },
		Preview: e.preview,
	})
	t.Revise = e.revise
	return t
}

type edit struct{ changes }

// editCall is a call with its params decoded and checked.
type editCall struct {
	editParams
	rel   string
	hides func(string) bool
}

func (e *edit) prepare(call registry.Call) (*editCall, error) {
	p, err := tool.Decode[editParams]("edit", call)
	if err == nil {
		err = p.normalize()
	}
	if err != nil {
		return nil, err
	}
	rel, err := e.workspace.Changeable("edit", "/file_path", p.FilePath)
	return &editCall{p, rel, call.Hides}, err
}

// normalize converts both forms of the params to a list of replacements.
func (p *editParams) normalize() error {
	single := p.Old != nil || p.New != nil || p.Expected != nil
	switch {
	case single && p.Edits != nil:
		return registry.Invalid("edit", "/edits", "give either edits or old_string and new_string, not both")
	case p.Edits != nil:
	case p.Old == nil:
		return registry.Invalid("edit", "/old_string", "is required unless edits is given")
	case p.New == nil:
		return registry.Invalid("edit", "/new_string", "is required unless edits is given")
	default:
		p.Edits = []replacement{{Old: *p.Old, New: *p.New, Expected: p.Expected}}
	}
	for i, r := range p.Edits {
		at := ""
		if !single {
			at = fmt.Sprintf("/edits/%d", i)
		}
		switch {
		case r.Old == r.New && r.Old != "":
			return registry.Invalid("edit", at+"/new_string", "is the same as old_string: there is nothing to change")
		case r.Old == "" && i > 0:
			return registry.Invalid("edit", at+"/old_string", "is empty; only the first edit may be, to create a file")
		}
	}
	return nil
}

// change computes the call's change to the current file.
func (e *edit) change(p *editCall) (*fileChange, error) {
	before, err := stateOf(e.workspace.Dir, p.rel)
	switch {
	case err != nil:
		return nil, err
	case before.tooBig:
		return nil, errTooBig
	}
	list := p.Edits
	if !before.exists && list[0].Old != "" {
		return nil, mismatchError{errors.New(e.workspace.Explain(p.rel, p.FilePath, fs.ErrNotExist, p.hides))}
	}
	old, enc, err := textfile.Decode(before.data)
	if err != nil {
		return nil, err
	}
	changed := old
	if len(before.data) == 0 && list[0].Old == "" {
		changed, list = list[0].New, list[1:]
	}
	if changed, err = replaceAll(changed, list); err != nil {
		return nil, mismatchError{fmt.Errorf("%s: %w; nothing was changed", text.Quote(p.FilePath), err)}
	}
	if before.exists && changed == old {
		return nil, mismatchError{
			fmt.Errorf("%s: the edits have no effect; nothing was changed", text.Quote(p.FilePath))}
	}
	data, err := enc.Bytes(changed)
	if err != nil {
		return nil, err
	}
	return newChange(p.rel, before, old, changed, "", data), nil
}

func (e *edit) preview(_ context.Context, call registry.Call, p *editCall) (registry.Preview, error) {
	c, err := e.change(p)
	return e.changes.preview(call, p.FilePath, c, err)
}

// revise returns a call that replaces the whole current text of the file with
// the user's version.
func (e *edit) revise(_ context.Context, call registry.Call, content string) (registry.Call, error) {
	p, err := e.prepare(call)
	if err != nil {
		return call, err
	}
	c, err := e.change(p)
	if err != nil {
		return call, registry.Invalid("edit", "", "%s", explainWrite(p.FilePath, err))
	}
	if !utf8.ValidString(c.old) { // params are JSON, which cannot contain invalid UTF-8
		return call, registry.Invalid("edit", "",
			"%s contains bytes that are not UTF-8; accept or reject the edit unchanged", text.Quote(p.FilePath))
	}
	if c.before.exists && c.old == content {
		return call, registry.Invalid("edit", "/new_string",
			"%s already has the edited content: there is nothing to change", text.Quote(p.FilePath))
	}
	call.Params, err = jsonx.Marshal(editParams{FilePath: p.FilePath, Old: &c.old, New: &content})
	return call, err
}

func (e *edit) run(ctx context.Context, call registry.Call, p *editCall) (registry.Result, error) {
	return e.workspace.Locked(ctx, func() registry.Result {
		c, err := e.change(p)
		if refusal, refused := e.refusal(call, p.FilePath, c, err); refused {
			return refusal
		}
		return e.writeChange(p.FilePath, p.rel, c, "Edited")
	})
}
