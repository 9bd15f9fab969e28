package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// ranking keeps the newest files with matches, as many as are needed to fill
// the limit of lines. Once it is full, older files need not be searched, so
// searching a large tree for a common word is cheap. The result does not depend
// on the order in which files are added.
type ranking struct {
	limit  int
	binary bool // the only file searched is binary

	mu     sync.Mutex
	files  []ranked // newest first, ties by path
	errors atomic.Int64
	cut    atomic.Int64             // number of lines of which only the beginning was searched
	last   atomic.Pointer[position] // files after it need not be searched; nil means search all
}

// position is the place of a file in the order: newest first, then by path.
type position struct {
	changed time.Time
	path    string
}

func (p *position) compare(q *position) int {
	return cmp.Or(q.changed.Compare(p.changed), strings.Compare(p.path, q.path))
}

// ranked is a file with matches.
type ranked struct {
	position
	found found
}

func (r *ranking) failed() { r.errors.Add(1) }

// wants reports whether a file at this position could still be among the
// results.
func (r *ranking) wants(p *position) bool {
	last := r.last.Load()
	return last == nil || p.compare(last) <= 0
}

func (r *ranking) add(f ranked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.files, f, func(a, b ranked) int { return a.compare(&b.position) })
	r.files = slices.Insert(r.files, at, f)
	matches := 0
	for i := range r.files {
		matches += r.files[i].found.matches
		if matches < r.limit {
			continue
		}
		clear(r.files[i+1:])
		r.files = r.files[:i+1]
		last := r.files[i].position
		r.last.Store(&last)
		return
	}
}

// trim removes lines of the last file that exceed the limit. It returns the
// number of matching lines.
func (r *ranking) trim() int {
	matches := 0
	for i := range r.files {
		f := &r.files[i].found
		if over := matches + f.matches - r.limit; over > 0 {
			f.keep(f.matches - over)
		}
		matches += f.matches
	}
	return matches
}

func (s *grepSearch) result(r *ranking, left *workspace.LeftOut) registry.Result {
	matches := r.trim()
	note := left.Note()
	if n := int(r.errors.Load()); n > 0 {
		note += fmt.Sprintf(" (%s could not be read)", text.Count(n, "file"))
	}
	if n := int(r.cut.Load()); n > 0 {
		note += fmt.Sprintf(" (lines longer than %d MiB, of which only the beginning was searched: %d)", maxLine>>20, n)
	}
	if matches == 0 {
		if r.binary {
			note += " (the file is binary)"
		}
		note = literalEscapes(s.Pattern) + note
		if s.include != nil && left.Nothing() {
			note = " No file matches include, which is " + aGlob + note
		}
		out := registry.TextResult("No matches " + s.what() + "." + note)
		out.Summary = "no matches"
		return out
	}
	// Not all files after the limit were searched, so there may be more matches. The
	// note must not depend on timing.
	cut := matches >= s.limit
	found := fmt.Sprintf("%s in %s", text.Count(matches, "match"), text.Count(len(r.files), "file"))
	var b strings.Builder
	if cut {
		fmt.Fprintf(&b,
			"Showing the first %s %s; there may be more. Narrow pattern, path or include, or raise limit:\n",
			found, s.what())
	} else {
		fmt.Fprintf(&b, "Found %s %s:\n", found, s.what())
	}
	out := registry.Result{Summary: "found " + found, Truncated: cut}
	part := "" // the first line that is shown in part
	for _, f := range r.files {
		f.write(&b, s.context > 0)
		for _, l := range f.found.lines {
			if l.part && part == "" {
				part = fmt.Sprintf("%d of %s", l.number, tool.OneLine(f.path))
			}
			if l.match {
				out.Locations = append(out.Locations, registry.Location{Path: f.path, Line: l.number})
			}
		}
	}
	b.WriteString("---\n")
	if part != "" {
		note = fmt.Sprintf(
			" (long lines are shown in part, such as line %s; read_file with offset shows more of a line)", part) + note
	}
	if note != "" {
		b.WriteString(strings.TrimSpace(note) + "\n")
	}
	out.Content = []registry.Content{registry.TextContent(b.String())}
	if cut {
		out.Summary += " (limited)"
	}
	return out
}

// what describes what was searched for and where.
func (s *grepSearch) what() string {
	what := fmt.Sprintf("for %s", text.Quote(s.Pattern))
	if s.start != "." {
		what += fmt.Sprintf(" in %s", text.Quote(s.start))
	}
	if s.Include != "" {
		what += fmt.Sprintf(" (include %s)", text.Quote(s.Include))
	}
	return what
}

func (f *ranked) write(b *strings.Builder, gaps bool) {
	fmt.Fprintf(b, "---\nFile: %s\n", tool.OneLine(f.path))
	for i, l := range f.found.lines {
		if gaps && i > 0 && l.number != f.found.lines[i-1].number+1 {
			b.WriteString("...\n")
		}
		mark := ":"
		if !l.match {
			mark = "-"
		}
		fmt.Fprintf(b, "L%d%s %s\n", l.number, mark, l.text)
	}
}
