// Package search has the built-in tools that search the workspace:
// list_directory, glob and grep.
package search

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed glob.md
var globDescription string

const (
	globDefaultLimit = 500
	searchTimeout    = 2 * time.Minute
)

const globSchema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The pattern that paths must match, relative to path, such as **/*.go or docs/*.{md,txt}."},
    "path": {"type": "string", "minLength": 1, "description": "The folder to search, relative to the workspace or absolute inside it. Default: the whole workspace."},
    "case_sensitive": {"type": "boolean", "description": "Match case. Default: false."},
    "respect_ignore_files": {"type": "boolean", "description": "Skip what ignore files such as .gitignore exclude. Default: true."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "Maximum files to return. Default: 500."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

type globParams struct {
	Pattern       string        `json:"pattern"`
	Path          string        `json:"path"`
	CaseSensitive bool          `json:"case_sensitive"`
	Respect       *bool         `json:"respect_ignore_files"`
	Limit         *tool.Integer `json:"limit"`
}

// NewGlob returns the tool glob, which finds files whose paths match, newest
// first.
func NewGlob(w *workspace.Dir) registry.Tool {
	g := &globTool{workspace: w}
	return tool.New(registry.Definition{
		Name:        "glob",
		Description: globDescription,
		Category:    registry.CategoryRead,
		Tags:        []string{"files", "search"},
		Icon:        "fileSearch",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(globSchema),
		Examples: []registry.Example{
			{Description: "All Go files", Params: json.RawMessage(`{"pattern":"**/*.go"}`)},
			{Description: "Two kinds of files in one folder", Params: json.RawMessage(`{"pattern":"*.{md,txt}","path":"docs"}`)},
		},
	}, tool.Handlers[*globSearch]{
		Prepare: g.prepare,
		Run:     g.run,
		Paths:   func(s *globSearch) ([]string, error) { return g.workspace.SubjectPaths(cmp.Or(s.Path, s.start)) },
		File:    func(s *globSearch) string { return s.start },
		Timeout: searchTimeout,
	})
}

type globTool struct{ workspace *workspace.Dir }

// globSearch is a call with its params decoded and checked.
type globSearch struct {
	globParams
	start   string
	pattern *glob.Pattern
}

func (g *globTool) prepare(call registry.Call) (*globSearch, error) {
	p, err := tool.Decode[globParams]("glob", call)
	if err != nil {
		return nil, err
	}
	s := &globSearch{globParams: p}
	if s.start, err = g.workspace.Param("glob", "/path", cmp.Or(p.Path, ".")); err != nil {
		return nil, err
	}
	s.pattern, err = compileBelow(g.workspace, "glob", "/pattern", p.Pattern, !p.CaseSensitive, &s.start, &s.Path)
	return s, err
}

type foundFile struct {
	path    string
	changed time.Time
}

func (g *globTool) run(ctx context.Context, call registry.Call, s *globSearch) (registry.Result, error) {
	if failed, ok := g.workspace.NotFolder(s.start, s.Path, call.Hides); ok {
		return failed, nil
	}
	files, walked, err := g.findFiles(ctx, s, call.Hides)
	if err != nil {
		return registry.Result{}, fmt.Errorf("searching %s: %w", text.Quote(s.start), err)
	}
	total := len(files)
	// The newest first, and those of one time by path.
	files = firstOf(files, s.Limit.OrDefault(globDefaultLimit), func(a, b foundFile) int {
		return cmp.Or(b.changed.Compare(a.changed), strings.Compare(a.path, b.path))
	})
	return s.result(files, total, walked), nil
}

func (g *globTool) findFiles(ctx context.Context, s *globSearch,
	hides func(string) bool) ([]foundFile, *workspace.LeftOut, error) {
	found := make([][]foundFile, workspace.Workers())
	walked, err := g.workspace.Walk(ctx, workspace.WalkOptions{
		Start:   s.start,
		Respect: tool.OrTrue(s.Respect),
		Hides:   hides,
		Enter: func(e *workspace.Entry) bool {
			return s.pattern.MayContain(relativeTo(s.start, e.Path)) && (e.Name != gitFolder || s.pattern.Names(e.Name))
		},
		Match:  func(e *workspace.Entry) bool { return s.pattern.Match(relativeTo(s.start, e.Path)) },
		Forced: func(e *workspace.Entry) bool { return s.pattern.Names(e.Name) },
		Each: func(worker int, e *workspace.Entry) {
			found[worker] = append(found[worker], foundFile{path: e.Path, changed: e.Dir.Changed(e.Name)})
		},
	})
	return slices.Concat(found...), walked, err
}

// firstOf returns the first n elements in order. It skips elements that come
// after the n-th one found so far, to sort as few as possible.
func firstOf[T any](all []T, n int, compare func(a, b T) int) []T {
	var best []T
	full := false // best[:n] is sorted, and only elements before its last are kept
	for _, e := range all {
		if full && compare(e, best[n-1]) >= 0 {
			continue
		}
		if best = append(best, e); len(best) >= 2*n {
			slices.SortFunc(best, compare)
			best, full = best[:n], true
		}
	}
	slices.SortFunc(best, compare)
	return best[:min(n, len(best))]
}

func (s *globSearch) result(files []foundFile, total int, w *workspace.LeftOut) registry.Result {
	where := ""
	if s.start != "." {
		where = fmt.Sprintf(" in %s", text.Quote(s.start))
	}
	if total == 0 {
		note := w.Note()
		if isOddGlob(s.Pattern) {
			note = " The pattern is " + aGlob + note
		}
		r := registry.TextResult(fmt.Sprintf("No files match %s%s.%s", text.Quote(s.Pattern), where, note))
		r.Summary = "no files found"
		return r
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Found %s matching %s%s", text.Count(total, "file"), text.Quote(s.Pattern), where)
	if total > len(files) {
		fmt.Fprintf(&b, ", showing the first %d; narrow the pattern or raise limit to see more", len(files))
	}
	b.WriteString(":\n")
	for _, f := range files {
		b.WriteString(tool.OneLine(f.path) + "\n")
	}
	if note := w.Note(); note != "" {
		b.WriteString(strings.TrimSpace(note) + "\n")
	}
	r := registry.TextResult(b.String())
	r.Summary = "found " + text.Count(total, "file")
	r.Truncated = total > len(files)
	r.Locations = make([]registry.Location, len(files))
	for i, f := range files {
		r.Locations[i].Path = f.path
	}
	return r
}
