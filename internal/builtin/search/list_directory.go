package search

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
	fmt.Fprintf(&b, "%s/ (%s", strings.TrimSuffix(tool.OneLine(s.start), "/"), text.Count(t.listed, "entry"))
	if t.depthCut {
		fmt.Fprintf(&b, ", %s deep", text.Count(s.depth, "level"))
	}
	b.WriteString("):\n")
	t.root.write(&b, "")
	if t.hidden > 0 {
		fmt.Fprintf(&b, "(cut off at %s: at least %d more are not listed; list a folder by itself, or use glob)\n",
			text.Count(listLimit, "entry"), t.hidden)
	}
	if t.ignored > 0 {
		fmt.Fprintf(&b, "(%s excluded by ignore files; respect_ignore_files: false shows them)\n",
			text.Count(t.ignored, "entry"))
	}
	if t.denied > 0 {
		b.WriteString(strings.TrimSpace(workspace.Hidden(t.denied)) + "\n")
	}
	r := registry.TextResult(b.String())
	r.Summary = "listed " + text.Count(t.listed, "entry")
	r.Truncated = t.hidden > 0
	r.Locations = []registry.Location{{Path: s.start}}
	return r
}

// maxCounted limits the number of folders that are read only to count hidden
// entries.
const maxCounted = 1000

// tree is a folder that is listed to a given depth.
type tree struct {
	top      *os.Root // the workspace
	root     *branch
	hides    func(path string) bool // nil means hides nothing
	listed   int                    // entries shown
	hidden   int                    // entries not shown because of the limit
	ignored  int                    // entries excluded by ignore files
	denied   int                    // entries excluded by rules
	depthCut bool                   // there are entries below the depth
}

// branch is an entry and the entries below it.
type branch struct {
	path     string // relative to the workspace, which is ""
	label    string // the name as shown
	isDir    bool
	rules    *workspace.IgnoreRules
	children []*branch
	hidden   int
	problem  string // why it could not be read, or ""
}

// newTree lists level by level, so that a limit cuts off the deepest levels
// rather than the end of the alphabet.
func newTree(ctx context.Context, w *workspace.Dir, s *listing, hides func(string) bool) (*tree, error) {
	root, err := w.Root()
	if err != nil {
		return nil, err
	}
	t := &tree{top: root, root: &branch{path: s.start, isDir: true}, hides: hides}
	if s.start == "." {
		t.root.path = ""
	}
	if tool.OrTrue(s.Respect) {
		t.root.rules = w.IgnoreRules(root, s.start)
	}
	counted := 0
	level := []*branch{t.root}
	for depth := 0; depth < s.depth && len(level) > 0; depth++ {
		var next []*branch
		for _, b := range level {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if t.listed >= listLimit {
				if counted++; counted > maxCounted {
					break
				}
			}
			t.grow(w, s, b)
			for _, c := range b.children {
				if c.isDir && c.label != gitFolder && (c.label != workspace.Packages || !tool.OrTrue(s.Respect)) {
					next = append(next, c)
				}
			}
		}
		level = next
	}
	t.depthCut = len(level) > 0
	return t, nil
}

// grow reads the entries of a folder, up to the limit.
func (t *tree) grow(w *workspace.Dir, s *listing, b *branch) {
	open, err := w.OpenFolder(workspace.OrDot(b.path))
	if err != nil {
		b.problem = text.Cause(err).Error()
		return
	}
	defer open.Close()
	found, err := open.Entries()
	if err != nil {
		b.problem = text.Cause(err).Error()
	}
	if tool.OrTrue(s.Respect) {
		b.rules = b.rules.Enter(open, b.path, found)
	}
	found = slices.DeleteFunc(found, func(e fs.DirEntry) bool { return t.leftOut(s, b, e) })
	slices.SortStableFunc(found, func(x, y fs.DirEntry) int {
		if x.IsDir() != y.IsDir() {
			if x.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(strings.ToLower(x.Name()), strings.ToLower(y.Name())), cmp.Compare(x.Name(), y.Name()))
	})
	for i, e := range found {
		if t.listed >= listLimit {
			b.hidden = len(found) - i
			t.hidden += b.hidden
			return
		}
		t.listed++
		b.children = append(b.children, &branch{
			path: workspace.Join(b.path, e.Name()), label: e.Name(), isDir: e.IsDir(), rules: b.rules,
			problem: t.kindNote(workspace.Join(b.path, e.Name()), e),
		})
	}
}

func (t *tree) leftOut(s *listing, b *branch, e fs.DirEntry) bool {
	path := workspace.Join(b.path, e.Name())
	if b.rules.Ignored(path, e.IsDir()) {
		t.ignored++
		return true
	}
	if t.hides != nil && t.hides(path) {
		t.denied++
		return true
	}
	return slices.ContainsFunc(s.ignore, func(p *glob.Pattern) bool { return p.Match(relativeTo(s.start, path)) })
}

// kindNote describes an entry that is neither file nor folder.
func (t *tree) kindNote(path string, e fs.DirEntry) string {
	switch kind := e.Type(); {
	case kind&fs.ModeSymlink != 0:
		target, err := t.top.Readlink(path)
		if err != nil {
			return "link"
		}
		return "link to " + tool.OneLine(target)
	case kind&fs.ModeNamedPipe != 0:
		return "pipe"
	case kind&fs.ModeSocket != 0:
		return "socket"
	case kind&fs.ModeDevice != 0:
		return "device"
	}
	return ""
}

func (b *branch) write(out *strings.Builder, indent string) {
	for _, c := range b.children {
		out.WriteString(indent + tool.OneLine(c.label))
		if c.isDir {
			out.WriteByte('/')
		}
		if c.problem != "" {
			fmt.Fprintf(out, " (%s)", c.problem)
		}
		out.WriteByte('\n')
		c.write(out, indent+"  ")
	}
	if b.hidden > 0 {
		fmt.Fprintf(out, "%s... %s more\n", indent, text.Count(b.hidden, "entry"))
	}
}
