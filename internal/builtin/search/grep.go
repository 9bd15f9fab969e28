package search

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toolreg/toolreg/internal/builtin/glob"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed grep.md
var grepDescription string

const grepDefaultLimit = 200

const grepSchema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The regular expression (RE2 syntax) to search for within lines, such as func \\w+Error or TODO."},
    "path": {"type": "string", "minLength": 1, "description": "The folder or file to search, relative to the workspace or absolute inside it. Default: the whole workspace."},
    "include": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "Search only files whose path, relative to path, matches this glob, such as *.go, *.{ts,tsx} or src/**/*.py."},
    "case_sensitive": {"type": "boolean", "description": "Match case. Default: false."},
    "context": {"type": "integer", "minimum": 0, "maximum": 50, "description": "How many lines to show before and after each match. Default: 0."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "Maximum matching lines to return. Default: 200."},
    "respect_ignore_files": {"type": "boolean", "description": "Skip what ignore files such as .gitignore exclude. Default: true."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

type grepParams struct {
	Pattern       string        `json:"pattern"`
	Path          string        `json:"path"`
	Include       string        `json:"include"`
	CaseSensitive bool          `json:"case_sensitive"`
	Context       *tool.Integer `json:"context"`
	Limit         *tool.Integer `json:"limit"`
	Respect       *bool         `json:"respect_ignore_files"`
}

// NewGrep returns the tool grep. It does not use ripgrep even if it is
// installed: a single engine returns the same results everywhere (ripgrep's \d
// matches all Unicode digits, and its order and its rules for hidden and binary
// files differ) and is as fast.
func NewGrep(w *workspace.Dir) registry.Tool {
	g := &grepTool{workspace: w}
	return tool.New(registry.Definition{
		Name:        "grep",
		Description: grepDescription,
		Category:    registry.CategoryRead,
		Tags:        []string{"files", "search"},
		Icon:        "regex",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(grepSchema),
		Examples: []registry.Example{
			{Description: "Where an error is created, in Go files",
				Params: json.RawMessage(`{"pattern":"errors\\.New","include":"*.go"}`)},
			{
				Description: "A name, matching case, with two lines of context",
				Params:      json.RawMessage(`{"pattern":"\\bConfig\\b","case_sensitive":true,"context":2}`),
			},
		},
	}, tool.Handlers[*grepSearch]{
		Prepare: g.prepare,
		Run:     g.run,
		Paths:   func(s *grepSearch) ([]string, error) { return g.workspace.SubjectPaths(cmp.Or(s.Path, ".")) },
		File:    func(s *grepSearch) string { return s.start },
		Timeout: searchTimeout,
	})
}

type grepTool struct{ workspace *workspace.Dir }

// grepSearch is a call with its params decoded and checked.
type grepSearch struct {
	grepParams
	start   string
	include *glob.Pattern // nil means all files
	expr    *lineExpr
	limit   int
	context int
}

func (g *grepTool) prepare(call registry.Call) (*grepSearch, error) {
	p, err := tool.Decode[grepParams]("grep", call)
	if err != nil {
		return nil, err
	}
	s := &grepSearch{grepParams: p, limit: p.Limit.OrDefault(grepDefaultLimit), context: p.Context.OrDefault(0)}
	if s.start, err = g.workspace.Param("grep", "/path", cmp.Or(p.Path, ".")); err != nil {
		return nil, err
	}
	if p.Include != "" {
		s.include, err = compileBelow(g.workspace, "grep", "/include", p.Include, !p.CaseSensitive, &s.start, &s.Path)
		if err != nil {
			return nil, err
		}
	}
	if s.expr, err = compileLineExpr(p.Pattern, !p.CaseSensitive); err != nil {
		return nil, registry.Invalid("grep", "/pattern", "%v", err)
	}
	return s, nil
}

func (g *grepTool) run(ctx context.Context, call registry.Call, s *grepSearch) (registry.Result, error) {
	f, info, err := g.workspace.OpenFile(s.start)
	if err != nil {
		return g.workspace.Failure(s.start, s.Path, err, call.Hides), nil
	}
	defer f.Close()
	rank := &ranking{limit: s.limit}
	left := &workspace.LeftOut{}
	if info.IsDir() {
		left, err = g.searchTree(ctx, s, rank, call.Hides)
	} else {
		s.include = nil // a file that is given as the path is always searched
		err = s.searchOne(ctx, f, info, rank)
	}
	if err != nil {
		return registry.Result{}, fmt.Errorf("searching %s: %w", text.Quote(s.start), err)
	}
	return s.result(rank, left), nil
}

func (g *grepTool) searchTree(ctx context.Context, s *grepSearch,
	rank *ranking, hides func(string) bool) (*workspace.LeftOut, error) {
	searchers := make([]*searcher, workspace.Workers())
	for i := range searchers {
		searchers[i] = s.newSearcher()
	}
	opts := workspace.WalkOptions{
		Start:   s.start,
		Respect: tool.OrTrue(s.Respect),
		Hides:   hides,
		Enter: func(e *workspace.Entry) bool {
			if s.include == nil {
				return e.Name != gitFolder
			}
			return s.include.MayContain(relativeTo(s.start, e.Path)) && (e.Name != gitFolder || s.include.Names(e.Name))
		},
		Match: func(e *workspace.Entry) bool {
			return e.Kind == 0 && !workspace.IsLogin(e.Name) &&
				(s.include == nil || s.include.Match(relativeTo(s.start, e.Path)))
		},
		Each: func(worker int, e *workspace.Entry) { searchFile(ctx, searchers[worker], e, rank) },
	}
	if s.include != nil {
		opts.Forced = func(e *workspace.Entry) bool { return s.include.Names(e.Name) }
	}
	return g.workspace.Walk(ctx, opts)
}

func (s *grepSearch) newSearcher() *searcher {
	return &searcher{expr: s.expr, context: s.context, limit: s.limit}
}

// searchFile searches one file, unless newer files have already filled the
// limit. The walk saw a regular file; its type is checked again after opening.
func searchFile(ctx context.Context, search *searcher, e *workspace.Entry, rank *ranking) {
	f, err := e.Dir.Open(e.Name)
	if err != nil {
		if !errors.Is(err, workspace.ErrKind) {
			rank.failed()
		}
		return
	}
	defer f.Close()
	at := position{changed: f.Changed, path: e.Path}
	if !rank.wants(&at) {
		return
	}
	found, err := search.file(ctx, f, f.Size)
	rank.cut.Add(int64(found.cut))
	switch {
	case err != nil:
		rank.failed()
	case len(found.lines) > 0:
		rank.add(ranked{at, found})
	}
}

func (s *grepSearch) searchOne(ctx context.Context, f *os.File, info fs.FileInfo, rank *ranking) error {
	found, err := s.newSearcher().file(ctx, f, info.Size())
	if err != nil {
		return err
	}
	rank.binary = found.binary
	rank.cut.Add(int64(found.cut))
	if len(found.lines) > 0 {
		rank.add(ranked{position{info.ModTime(), s.start}, found})
	}
	return nil
}
