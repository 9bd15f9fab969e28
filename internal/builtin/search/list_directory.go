package search

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed list_directory.md
var listDirectoryDescription string

const (
	listDefaultDepth = 3
	listLimit        = 500
)

const listDirectorySchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "The folder to list, relative to the workspace or absolute inside it; . is the workspace itself."},
    "depth": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many levels to list; 1 is only the folder. Default: 3."},
    "ignore": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 4096}, "maxItems": 100, "description": "Globs of entries to skip, such as *.log or docs/**."},
    "respect_ignore_files": {"type": "boolean", "description": "Skip what ignore files such as .gitignore exclude. Default: true."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

type listParams struct {
	Path    string        `json:"path"`
	Depth   *tool.Integer `json:"depth"`
	Ignore  []string      `json:"ignore"`
	Respect *bool         `json:"respect_ignore_files"`
}

// NewListDirectory returns the tool list_directory, which shows a folder as a
// tree.
func NewListDirectory(w *workspace.Dir) registry.Tool {
	l := &listTool{workspace: w}
	return tool.New(registry.Definition{
		Name:        "list_directory",
		Description: listDirectoryDescription,
		Category:    registry.CategoryRead,
		Tags:        []string{"files"},
		Icon:        "folder",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(listDirectorySchema),
		Examples: []registry.Example{
			{Description: "The workspace, three levels deep", Params: json.RawMessage(`{"path":"."}`)},
			{Description: "One folder alone, without logs", Params: json.RawMessage(`{"path":"build","depth":1,"ignore":["*.log"]}`)},
		},
	}, tool.Handlers[*listing]{
		Prepare: l.prepare,
		Run:     l.run,
		Paths:   func(s *listing) ([]string, error) { return l.workspace.SubjectPaths(s.Path) },
		File:    func(s *listing) string { return s.start },
		Timeout: searchTimeout,
	})
}

type listTool struct{ workspace *workspace.Dir }

// listing is a call with its params decoded and checked.
type listing struct {
	listParams
	start  string
	depth  int
	ignore []*glob.Pattern
}

func (l *listTool) prepare(call registry.Call) (*listing, error) {
	p, err := tool.Decode[listParams]("list_directory", call)
	if err != nil {
		return nil, err
	}
	s := &listing{listParams: p, depth: p.Depth.OrDefault(listDefaultDepth)}
	if s.start, err = l.workspace.Param("list_directory", "/path", p.Path); err != nil {
		return nil, err
	}
	for i, text := range p.Ignore {
		p, err := glob.CompilePattern(text, false)
		if err != nil {
			return nil, registry.Invalid("list_directory", fmt.Sprintf("/ignore/%d", i), "%v", err)
		}
		s.ignore = append(s.ignore, p)
	}
	return s, nil
}

func (l *listTool) run(ctx context.Context, call registry.Call, s *listing) (registry.Result, error) {
	if failed, ok := l.workspace.NotFolder(s.start, s.Path, call.Hides); ok {
		return failed, nil
	}
	t, err := newTree(ctx, l.workspace, s, call.Hides)
	if err != nil {
		return registry.Result{}, fmt.Errorf("listing %s: %w", text.Quote(s.Path), err)
	}
	return s.result(t), nil
}

func (s *listing) result(t *tree) registry.Result {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/ (%s", strings.TrimSuffix(tool.OneLine(s.start), "/"), tool.Count(t.listed, "entry"))
	if t.depthCut {
		fmt.Fprintf(&b, ", %s deep", tool.Count(s.depth, "level"))
	}
	b.WriteString("):\n")
	t.root.write(&b, "")
	if t.hidden > 0 {
		fmt.Fprintf(&b, "(cut off at %s: at least %d more are not listed; list a folder by itself, or use glob)\n",
			tool.Count(listLimit, "entry"), t.hidden)
	}
	if t.ignored > 0 {
		fmt.Fprintf(&b, "(%s excluded by ignore files; respect_ignore_files: false shows them)\n",
			tool.Count(t.ignored, "entry"))
	}
	if t.denied > 0 {
		b.WriteString(strings.TrimSpace(workspace.Hidden(t.denied)) + "\n")
	}
	r := registry.TextResult(b.String())
	r.Summary = "listed " + tool.Count(t.listed, "entry")
	r.Truncated = t.hidden > 0
	r.Locations = []registry.Location{{Path: s.start}}
	return r
}
