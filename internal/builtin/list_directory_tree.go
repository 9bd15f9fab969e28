package builtin

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxCounted bounds the folders that are read only to count what is hidden.
const maxCounted = 1000

// tree is a folder listed to a depth.
type tree struct {
	root     *branch
	listed   int  // entries shown
	hidden   int  // entries not shown for the limit's sake
	ignored  int  // entries left out by ignore files
	depthCut bool // there is more below the depth
}

// branch is one entry and what is in it.
type branch struct {
	path     string // relative to the workspace, "" for itself
	label    string // the name as it is shown
	isDir    bool
	rules    *ignoring
	children []*branch
	hidden   int
	problem  string // why it could not be read
}

// tree lists level by level, so that a limit cuts the depths and not whatever
// comes last in the alphabet.
func (w *workspace) tree(ctx context.Context, s *listing) (*tree, error) {
	root, err := w.open()
	if err != nil {
		return nil, err
	}
	t := &tree{root: &branch{path: s.start, isDir: true}}
	if s.start == "." {
		t.root.path = ""
	}
	if orTrue(s.Respect) {
		t.root.rules = w.ignoringIn(root, s.start)
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
			t.grow(root, s, b)
			for _, c := range b.children {
				if c.isDir && !skipped(c.label, orTrue(s.Respect)) {
					next = append(next, c)
				}
			}
		}
		level = next
	}
	t.depthCut = len(level) > 0
	return t, nil
}

// grow reads the entries of a folder, as many as the limit leaves.
func (t *tree) grow(root *os.Root, s *listing, b *branch) {
	dir, err := root.OpenRoot(dotted(b.path))
	if err != nil {
		b.problem = reason(err).Error()
		return
	}
	defer dir.Close()
	open, err := openDirIn(dir, ".")
	if err != nil {
		b.problem = err.Error()
		return
	}
	defer open.Close()
	found, err := open.entries()
	if err != nil {
		b.problem = reason(err).Error()
	}
	if orTrue(s.Respect) {
		b.rules = b.rules.enter(open, b.path, found)
	}
	found = slices.DeleteFunc(found, func(e dirent) bool { return t.leftOut(s, b, e) })
	slices.SortFunc(found, func(x, y dirent) int {
		if x.isDir() != y.isDir() {
			if x.isDir() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(strings.ToLower(x.name), strings.ToLower(y.name)), cmp.Compare(x.name, y.name))
	})
	for i, e := range found {
		if t.listed >= listLimit {
			b.hidden = len(found) - i
			t.hidden += b.hidden
			return
		}
		t.listed++
		b.children = append(b.children, &branch{
			path: under(b.path, e.name), label: e.name, isDir: e.isDir(), rules: b.rules,
			problem: kindNote(dir, e),
		})
	}
}

func (t *tree) leftOut(s *listing, b *branch, e dirent) bool {
	path := under(b.path, e.name)
	if b.rules.ignored(path, e.isDir()) {
		t.ignored++
		return true
	}
	return slices.ContainsFunc(s.ignore, func(p *pattern) bool { return p.match(below(s.start, path)) })
}

// kindNote tells what an entry is that is neither file nor folder.
func kindNote(dir *os.Root, e dirent) string {
	switch kind := e.kind; {
	case kind&fs.ModeSymlink != 0:
		target, err := dir.Readlink(e.name)
		if err != nil {
			return "link"
		}
		return "link to " + oneLine(target)
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
		out.WriteString(indent + oneLine(c.label))
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
		fmt.Fprintf(out, "%s... %s more\n", indent, entries(b.hidden))
	}
}

// oneLine returns a file name fit for a line of its own: one that holds control
// characters is quoted, so that it cannot pass for several lines.
func oneLine(name string) string {
	for _, r := range name {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}
