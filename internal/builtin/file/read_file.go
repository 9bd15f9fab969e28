// Package file has the built-in tools that read and change single files:
// read_file, write_file, edit and apply_patch.
//
// A change is computed in memory, shown as a diff, and written completely or
// not at all, with the workspace locked.
package file

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed read_file.md
var readFileDescription string

const (
	readDefaultLines = 2000
	readMaxMedia     = 20 << 20 // bytes of an image, audio, video or PDF file
	readBuffer       = 128 << 10
)

const readFileSchema = `{
  "type": "object",
  "properties": {
    "file_path": {"type": "string", "minLength": 1, "description": "The file to read, relative to the workspace or absolute inside it."},
    "offset": {"type": "integer", "minimum": 1, "description": "The first line to read, counted from 1. Default: 1."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000000, "description": "How many lines to read. Default: 2000."}
  },
  "required": ["file_path"],
  "additionalProperties": false
}`

type readParams struct {
	FilePath string        `json:"file_path"`
	Offset   *tool.Integer `json:"offset"`
	Limit    *tool.Integer `json:"limit"`
}

// Outside are files outside the workspace that read_file may read.
type Outside interface {
	// Folder returns the absolute path of the folder that has them, or "".
	Folder() string
	// May reports whether the caller of ctx may read the file at an absolute path.
	May(ctx context.Context, path string) bool
}

// NewReadFile returns the tool read_file, which returns lines of text, or an
// image, audio or document as data. outside may be nil.
func NewReadFile(w *workspace.Dir, outside Outside) registry.Tool {
	r := &readTool{workspace: w, outside: outside}
	return tool.New(registry.Definition{
		Name:        "read_file",
		Description: readFileDescription,
		Category:    registry.CategoryRead,
		Tags:        []string{"files"},
		Icon:        "fileSearch",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(readFileSchema),
		Examples: []registry.Example{
			{Description: "A whole file", Params: json.RawMessage(`{"file_path":"README.md"}`)},
			{Description: "Lines 100 to 149", Params: json.RawMessage(`{"file_path":"src/main.go","offset":100,"limit":50}`)},
		},
	}, tool.Handlers[*readCall]{
		Prepare: r.prepare,
		Run:     r.run,
		Paths:   r.paths,
		File:    func(c *readCall) string { return c.rel },
	})
}

type readTool struct {
	workspace *workspace.Dir
	outside   Outside
}

// readCall is a call with its params decoded and checked.
type readCall struct {
	readParams
	rel string
}

func (r *readTool) prepare(call registry.Call) (*readCall, error) {
	p, err := tool.Decode[readParams]("read_file", call)
	if err != nil {
		return nil, err
	}
	rel, err := r.workspace.Param("read_file", "/file_path", p.FilePath)
	if err != nil && r.outside != nil {
		if path := filepath.FromSlash(p.FilePath); path == filepath.Clean(path) &&
			filepath.IsAbs(path) && filepath.Dir(path) == r.outside.Folder() {
			return &readCall{p, path}, nil
		}
	}
	return &readCall{p, rel}, err
}

func (r *readTool) paths(c *readCall) ([]string, error) {
	if filepath.IsAbs(c.rel) {
		return []string{c.rel}, nil
	}
	return r.workspace.SubjectPaths(c.FilePath)
}

func (r *readTool) run(ctx context.Context, call registry.Call, p *readCall) (registry.Result, error) {
	if filepath.IsAbs(p.rel) {
		return r.readOutside(ctx, call, p)
	}
	rel := p.rel
	f, info, err := r.workspace.OpenFile(rel)
	if err == nil {
		defer f.Close()
		if info.IsDir() {
			err = workspace.ErrIsDir
		}
	}
	if err != nil {
		return r.workspace.Failure(rel, p.FilePath, err, call.Hides), nil
	}
	in := bufio.NewReaderSize(f, int(min(readBuffer, max(info.Size()+1, textfile.SniffBytes))))
	head, err := in.Peek(textfile.SniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return r.workspace.Failure(rel, p.FilePath, text.Cause(err), call.Hides), nil
	}
	if mime := textfile.MediaType(head); mime != "" {
		return r.media(rel, mime, in, info)
	}
	if len(head) == 0 {
		return empty(p.FilePath), nil
	}
	enc, ok := textfile.Detect(head)
	if !ok {
		return registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf(
			"%q is binary (%s, %s) and cannot be read as text; use run_shell_command with a program for its format",
			p.FilePath, textfile.Type(head), tool.Size(info.Size()))), nil
	}
	lines := &excerpt{first: p.Offset.OrDefault(1), limit: p.Limit.OrDefault(readDefaultLines), encoding: enc}
	shown, note, unchanged, err := readable(rel, enc, in)
	if err == nil {
		lines.form = note
		if unchanged {
			lines.size = info.Size()
		}
		err = lines.read(ctx, shown)
	}
	if err != nil {
		if ctx.Err() != nil {
			return registry.Result{}, fmt.Errorf("reading %q: %w", p.FilePath, err)
		}
		return r.workspace.Failure(rel, p.FilePath, text.Cause(err), call.Hides), nil
	}
	return lines.result(rel, p.FilePath), nil
}

// readOutside reads a file outside the workspace like one in a workspace that is its
// folder.
func (r *readTool) readOutside(ctx context.Context, call registry.Call, p *readCall) (registry.Result, error) {
	if !r.outside.May(ctx, p.rel) {
		_, err := r.workspace.Param("read_file", "/file_path", p.FilePath)
		return registry.Result{}, err
	}
	dir, name := filepath.Split(p.rel)
	inner := &readTool{workspace: workspace.New(workspace.Options{Dir: filepath.Clean(dir)})}
	result, err := inner.run(ctx, call, &readCall{p.readParams, name})
	for i := range result.Locations {
		result.Locations[i].Path = p.rel
	}
	return result, err
}

// media returns the whole file as typed content.
func (r *readTool) media(rel, mime string, in io.Reader, info fs.FileInfo) (registry.Result, error) {
	data, err := io.ReadAll(io.LimitReader(in, readMaxMedia+1))
	if err != nil {
		return r.workspace.Failure(rel, rel, text.Cause(err), nil), nil
	}
	if len(data) > readMaxMedia {
		return registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf(
			"%q (%s, %d bytes) is larger than the limit of %s",
			rel, mime, max(info.Size(), int64(len(data))), tool.Size(readMaxMedia))), nil
	}
	c := registry.Media(data, mime, r.workspace.URI(rel))
	text := fmt.Sprintf("%s (%s, %s)", tool.OneLine(rel), mime, tool.Size(int64(len(data))))
	return registry.Result{
		Summary:   "read " + text,
		Content:   []registry.Content{c},
		Display:   registry.Display{Text: text},
		Locations: []registry.Location{{Path: rel}},
	}, nil
}
