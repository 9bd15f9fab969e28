package search

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/text"
)

// maxCounted limits the number of folders that are read only to count hidden
// entries.
const maxCounted = 1000

// tree is a folder that is listed to a given depth.
type tree struct {
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
	t := &tree{root: &branch{path: s.start, isDir: true}, hides: hides}
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
	dir, err := w.Enter(workspace.OrDot(b.path))
	if err != nil {
		b.problem = text.Cause(err).Error()
		return
	}
	defer dir.Close()
	open, err := workspace.OpenFolder(dir, ".")
	if err != nil {
		b.problem = err.Error()
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
	found = slices.DeleteFunc(found, func(e workspace.DirEntry) bool { return t.leftOut(s, b, e) })
	slices.SortStableFunc(found, func(x, y workspace.DirEntry) int {
		if x.IsDir() != y.IsDir() {
			if x.IsDir() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name)), cmp.Compare(x.Name, y.Name))
	})
	for i, e := range found {
		if t.listed >= listLimit {
			b.hidden = len(found) - i
			t.hidden += b.hidden
			return
		}
		t.listed++
		b.children = append(b.children, &branch{
			path: workspace.Join(b.path, e.Name), label: e.Name, isDir: e.IsDir(), rules: b.rules,
			problem: kindNote(dir, e),
		})
	}
}

func (t *tree) leftOut(s *listing, b *branch, e workspace.DirEntry) bool {
	path := workspace.Join(b.path, e.Name)
	if b.rules.Ignored(path, e.IsDir()) {
		t.ignored++
		return true
	}
	if t.hides != nil && t.hides(path) {
		t.denied++
		return true
	}
	return slices.ContainsFunc(s.ignore, func(p *glob.Pattern) bool { return p.Match(below(s.start, path)) })
}

// kindNote describes an entry that is neither file nor folder.
func kindNote(dir *os.Root, e workspace.DirEntry) string {
	switch kind := e.Kind; {
	case kind&fs.ModeSymlink != 0:
		target, err := dir.Readlink(e.Name)
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
		fmt.Fprintf(out, "%s... %s more\n", indent, tool.Count(b.hidden, "entry"))
	}
}
