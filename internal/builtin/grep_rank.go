package builtin

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

// ranking keeps the newest files with matches, as many as the limit of lines
// needs. Files older than what it holds when it is full need no search, which
// makes a common word cheap in a large tree; the outcome does not depend on
// the order in which files come.
type ranking struct {
	limit  int
	binary bool // the one file searched is binary

	mu     sync.Mutex
	files  []ranked // newest first, ties by path
	cut    bool     // matches were left out
	errors atomic.Int64
	last   atomic.Pointer[standing] // files behind it are not wanted; nil: all are
	passed atomic.Bool              // a file was not searched
}

// standing is where a file stands in the order: newest first, ties by path.
type standing struct {
	changed time.Time
	path    string
}

func (p *standing) compare(q *standing) int {
	if c := q.changed.Compare(p.changed); c != 0 {
		return c
	}
	return strings.Compare(p.path, q.path)
}

// ranked is a file with matches.
type ranked struct {
	standing
	found found
}

func (r *ranking) failed() { r.errors.Add(1) }

// wants reports whether a file could still count.
func (r *ranking) wants(p *standing) bool {
	if last := r.last.Load(); last != nil && p.compare(last) > 0 {
		r.passed.Store(true)
		return false
	}
	return true
}

func (r *ranking) add(f ranked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.files, f, func(a, b ranked) int { return a.compare(&b.standing) })
	r.files = slices.Insert(r.files, at, f)
	matches := 0
	for i := range r.files {
		matches += r.files[i].found.matches
		if matches < r.limit {
			continue
		}
		if i+1 < len(r.files) {
			r.cut = true
			clear(r.files[i+1:])
			r.files = r.files[:i+1]
		}
		last := r.files[i].standing
		r.last.Store(&last)
		return
	}
}

// trim cuts the last file to what the limit leaves of it. It returns the
// number of matching lines.
func (r *ranking) trim() int {
	matches := 0
	for i := range r.files {
		f := &r.files[i].found
		r.cut = r.cut || f.more
		if over := matches + f.matches - r.limit; over > 0 {
			r.cut = true
			f.keep(f.matches - over)
		}
		matches += f.matches
	}
	return matches
}

func (s *grepSearch) result(r *ranking, left *walked) registry.Result {
	matches := r.trim()
	var b strings.Builder
	fmt.Fprintf(&b, "for %q", s.Pattern)
	if s.start != "." {
		fmt.Fprintf(&b, " in %q", s.start)
	}
	if s.Include != "" {
		fmt.Fprintf(&b, " (include %q)", s.Include)
	}
	what := b.String()
	note := left.note()
	if n := int(r.errors.Load()); n > 0 {
		note += fmt.Sprintf(" (%s could not be read)", count(n, "file"))
	}
	if matches == 0 {
		if r.binary {
			note += " (the file is binary)"
		}
		out := registry.TextResult("No matches " + what + "." + note)
		out.Summary = "no matches"
		return out
	}
	cut := r.cut || r.passed.Load()
	b.Reset()
	if cut {
		fmt.Fprintf(&b, "Showing the first %s in %s %s; there are more. Narrow pattern, path or include, or raise limit:\n",
			count(matches, "match"), count(len(r.files), "file"), what)
	} else {
		fmt.Fprintf(&b, "Found %s in %s %s:\n", count(matches, "match"), count(len(r.files), "file"), what)
	}
	out := registry.Result{Truncated: cut}
	for _, f := range r.files {
		f.write(&b, s.context > 0)
		for _, l := range f.found.lines {
			if l.match {
				out.Locations = append(out.Locations, registry.Location{Path: f.path, Line: l.number})
			}
		}
	}
	b.WriteString("---\n")
	if note != "" {
		b.WriteString(strings.TrimSpace(note) + "\n")
	}
	out.Content = []registry.Content{registry.TextContent(b.String())}
	out.Summary = fmt.Sprintf("found %s in %s", count(matches, "match"), count(len(r.files), "file"))
	if cut {
		out.Summary += " (limited)"
	}
	return out
}

func (f *ranked) write(b *strings.Builder, gaps bool) {
	fmt.Fprintf(b, "---\nFile: %s\n", oneLine(f.path))
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
