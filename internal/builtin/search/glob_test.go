package search

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
	"github.com/toolreg/toolreg/internal/registry"
)

func TestGlobOrder(t *testing.T) {
	opts, dir := place(t, map[string]string{"z.go": "", "b.go": "", "a.go": "", "c/new.go": "", "c/newest.go": "", "other.txt": ""})
	for name, ago := range map[string]time.Duration{"z.go": 48 * time.Hour, "b.go": 25 * time.Hour, "a.go": 72 * time.Hour, "c/new.go": 2 * time.Hour, "c/newest.go": time.Minute} {
		tooltest.Aged(t, filepath.Join(dir, name), ago)
	}
	want := "Found 5 files matching \"**/*.go\":\nc/newest.go\nc/new.go\nb.go\nz.go\na.go\n"
	if diff := cmp.Diff(want, output(t, opts, "glob", `{"pattern":"**/*.go"}`)); diff != "" {
		t.Error(diff)
	}
	r := run(t, opts, "glob", `{"pattern":"*.go","limit":2}`)
	want = "Found 5 files matching \"*.go\", showing the first 2; narrow the pattern or raise limit to see more:\nc/newest.go\nc/new.go\n"
	if diff := cmp.Diff(want, r.Text()); diff != "" || !r.Truncated || r.Summary != "found 5 files" {
		t.Errorf("%s%v %q", diff, r.Truncated, r.Summary)
	}
	if diff := cmp.Diff([]registry.Location{{Path: "c/newest.go"}, {Path: "c/new.go"}}, r.Locations); diff != "" {
		t.Error(diff)
	}
}

func TestGlobFinds(t *testing.T) {
	opts, dir := place(t, map[string]string{
		"README.md": "", "src/a.ts": "", "src/A.tsx": "", "src/deep/b.js": "", ".hidden/c.ts": "", ".gitignore": "dist/\n*.log\n", "dist/d.ts": "", "e.log": "",
		".git/HEAD": "", "node_modules/p/index.ts": "", "sp ace/[x].ts": "",
		"app/[id]/page.jsx": "", "app/i/page.jsx": "", "app/d/q/page.jsx": "", "v[1]/{a,b}.c": "", "v1/a.c": "", "[open.c": "",
	})
	tooltest.Link(t, "README.md", filepath.Join(dir, "link.ts"))
	tooltest.Link(t, "src", filepath.Join(dir, "linked"))
	tooltest.Link(t, "..", filepath.Join(dir, ".hidden", "back"))
	tooltest.MakePipe(t, filepath.Join(dir, "pipe.ts"))
	tests := map[string][]string{
		`{"pattern":"**/*.ts"}`:                                  {".hidden/c.ts", "link.ts", "sp ace/[x].ts", "src/a.ts"},
		`{"pattern":"*.{ts,tsx}","path":"src"}`:                  {"src/A.tsx", "src/a.ts"},
		`{"pattern":"A*","path":"src"}`:                          {"src/A.tsx", "src/a.ts"},
		`{"pattern":"A*","path":"src","case_sensitive":true}`:    {"src/A.tsx"},
		`{"pattern":"app/[id]/page.jsx"}`:                        {"app/[id]/page.jsx"},
		`{"pattern":"app/[id]/**"}`:                              {"app/[id]/page.jsx"},
		`{"pattern":"**/[id]/*.jsx"}`:                            {"app/[id]/page.jsx", "app/i/page.jsx"},
		`{"pattern":"[id]/*.jsx","path":"app"}`:                  {"app/[id]/page.jsx"},
		`{"pattern":"app/[iq]/page.jsx"}`:                        {"app/i/page.jsx"},
		`{"pattern":"v[1]/{a,b}.c"}`:                             {"v[1]/{a,b}.c"},
		`{"pattern":"./[open.c"}`:                                {"[open.c"},
		`{"pattern":"readme.md"}`:                                {"README.md"},
		`{"pattern":"src/**"}`:                                   {"src/A.tsx", "src/a.ts", "src/deep/b.js"},
		`{"pattern":"dist/*"}`:                                   {"dist/d.ts"},
		`{"pattern":"e.log"}`:                                    {"e.log"},
		`{"pattern":"*.log"}`:                                    nil,
		`{"pattern":"*.log","respect_ignore_files":false}`:       {"e.log"},
		`{"pattern":"**/index.ts"}`:                              nil,
		`{"pattern":"**/index.ts","respect_ignore_files":false}`: {"node_modules/p/index.ts"},
		`{"pattern":"node_modules/**/*.ts"}`:                     {"node_modules/p/index.ts"},
		`{"pattern":".git/*"}`:                                   {".git/HEAD"},
		`{"pattern":"HEAD","respect_ignore_files":false}`:        nil,
		`{"pattern":"sp ace/\\[x\\].ts"}`:                        {"sp ace/[x].ts"},
		`{"pattern":"linked/*"}`:                                 {"src/A.tsx", "src/a.ts"},
		`{"pattern":"./linked/deep/*.js"}`:                       {"src/deep/b.js"},
		`{"pattern":"back/linked/**","path":".hidden"}`:          {"src/A.tsx", "src/a.ts", "src/deep/b.js"},
		`{"pattern":"**/linked/*"}`:                              nil,
		`{"pattern":"link.ts"}`:                                  {"link.ts"},
		`{"pattern":"*","path":"linked/deep"}`:                   {"src/deep/b.js"},
	}
	for params, want := range tests {
		if diff := cmp.Diff(want, globPaths(t, opts, params)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", params, diff)
		}
	}
	if text := output(t, opts, "glob", `{"pattern":"index.ts"}`); text != `No files match "index.ts". (2 entries excluded by ignore files; respect_ignore_files: false shows them)` {
		t.Error(text)
	}
	if text := output(t, opts, "glob", `{"pattern":"*.log"}`); !strings.Contains(text, `No files match "*.log". (`) || !strings.Contains(text, "excluded by ignore files") {
		t.Error(text)
	}
	const hint = `. The pattern is a glob of file paths such as src/** or *.{ts,tsx}.`
	for pattern, want := range map[string]bool{"src": true, "src/": true, "*.js,*.tsx": true, "*.jsx|*.tsx": true, "!*.js": true, `src\deep\*.js`: true,
		"*.{jsx,tsx}": false, "gone.js": false, "gone/*": false} {
		if got := output(t, opts, "glob", `{"pattern":`+tooltest.Quoted(pattern)+`}`); strings.Contains(got, hint) != want {
			t.Errorf("%s: %s", pattern, got)
		}
	}
	for path, want := range map[string]string{"gone": "does not exist", "README.md": "is a file, not a folder", "src/dep": `did you mean "src/deep"?`} {
		if r := run(t, opts, "glob", `{"pattern":"*","path":`+tooltest.Quoted(path)+`}`); !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("%s: %s", path, r.Text())
		}
	}
}

// TestWalkVisitsEverythingOnce walks folders with many entries, so that several
// workers share the entries of one folder.
func TestWalkVisitsEverythingOnce(t *testing.T) {
	opts, dir := place(t, nil)
	var want []string
	for i := range 700 {
		name := fmt.Sprintf("f%03d", i)
		if i%3 == 0 {
			name = fmt.Sprintf("d%d/e%d/%s", i%4, i%5, name)
		}
		tooltest.Put(t, filepath.Join(dir, name), "")
		want = append(want, name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, globPaths(t, opts, `{"pattern":"**","limit":1000}`)); diff != "" {
		t.Error(diff)
	}
}

func TestDeepFoldersAreWalked(t *testing.T) {
	deep := strings.Repeat("d/", 300) + "needle"
	opts, _ := place(t, map[string]string{deep: "needle"})
	if got := globPaths(t, opts, `{"pattern":"**/needle"}`); len(got) != 1 || got[0] != deep {
		t.Errorf("glob found %d", len(got))
	}
	if r := run(t, opts, "grep", `{"pattern":"needle"}`); len(r.Locations) != 1 {
		t.Errorf("grep found %d", len(r.Locations))
	}
}

func TestFirstOf(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 500 {
		all := make([]int, r.IntN(60))
		for i := range all {
			all[i] = r.IntN(40)
		}
		n := 1 + r.IntN(20)
		got := firstOf(all, n, func(a, b int) int { return a - b })
		slices.Sort(all)
		if !slices.Equal(got, all[:min(n, len(all))]) {
			t.Fatalf("the first %d of %v: %v", n, all, got)
		}
	}
}
