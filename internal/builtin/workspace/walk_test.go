package workspace

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/builtin/tooltest"
)

// A walk visits the files and links below its start, without what its options leave out.
func TestWalk(t *testing.T) {
	opts, dir := place(t, map[string]string{
		".gitignore": "*.o\n/build/\n", "a.go": "", "a.o": "", "build/x": "", "node_modules/p/x.js": "",
		"sub/.geminiignore": "private*\n", "sub/private.txt": "", "sub/b.o": "", "sub/deep/b.go": "", "sub/deep/private.go": "",
		"kept/.gitignore": "!keep.o\n", "kept/keep.o": "", "kept/b.o": "",
		"both/.gitignore": "x\n", "both/.ignore": "y\n!a.o\n", "both/x": "", "both/y": "", "both/a.o": "",
	})
	tooltest.Link(t, "sub", filepath.Join(dir, "link"))
	tooltest.MakePipe(t, filepath.Join(dir, "pipe"))
	w := tooltest.Open(t, New(opts))
	named := func(names ...string) func(*Entry) bool {
		return func(e *Entry) bool { return slices.Contains(names, e.Name) }
	}
	for name, tt := range map[string]struct {
		opts WalkOptions
		want string
		note string
	}{
		"all": {
			opts: WalkOptions{Start: "."},
			want: ".gitignore a.go a.o both/.gitignore both/.ignore both/a.o both/x both/y build/x kept/.gitignore kept/b.o kept/keep.o link node_modules/p/x.js " +
				"sub/.geminiignore sub/b.o sub/deep/b.go sub/deep/private.go sub/private.txt",
		},
		"ignore files": {
			opts: WalkOptions{Start: ".", Respect: true},
			want: ".gitignore a.go both/.gitignore both/.ignore both/a.o kept/.gitignore kept/keep.o link sub/.geminiignore sub/deep/b.go",
			note: "9 entries excluded by ignore files",
		},
		"below a start": {
			opts: WalkOptions{Start: "sub/deep", Respect: true},
			want: "sub/deep/b.go",
			note: "1 entry excluded by ignore files",
		},
		"forced": {
			opts: WalkOptions{Start: ".", Respect: true, Forced: named("build", "x", "node_modules")},
			want: ".gitignore a.go both/.gitignore both/.ignore both/a.o both/x build/x kept/.gitignore kept/keep.o link node_modules/p/x.js sub/.geminiignore sub/deep/b.go",
			note: "6 entries excluded by ignore files",
		},
		"by name": {
			opts: WalkOptions{Start: ".", Match: named("b.go", "x.js"), Enter: named("sub", "deep")},
			want: "sub/deep/b.go",
		},
		"hidden by rules": {
			opts: WalkOptions{Start: "sub", Hides: func(path string) bool { return path == "sub/deep" || path == "sub/b.o" }},
			want: "sub/.geminiignore sub/private.txt",
			note: "2 entries excluded by policy rules",
		},
	} {
		var mu sync.Mutex
		visited := map[string]bool{}
		tt.opts.Each = func(worker int, e *Entry) {
			mu.Lock()
			defer mu.Unlock()
			if visited[e.Path] || worker >= Workers() || filepath.Base(e.Path) != e.Name {
				t.Errorf("%s: %q, worker %d", name, e.Path, worker)
			}
			visited[e.Path] = true
		}
		left, err := w.Walk(t.Context(), tt.opts)
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(strings.Fields(tt.want), slices.Sorted(maps.Keys(visited))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if note := left.Note(); (note == "") != (tt.note == "") || !strings.Contains(note, tt.note) || left.Nothing() {
			t.Errorf("%s: note %q", name, note)
		}
	}
}

// All entries of a folder are visited, though in parts.
func TestWalkVisitsManyFiles(t *testing.T) {
	opts, dir := place(t, nil)
	for i := range 3*batchSize + 1 {
		tooltest.Put(t, filepath.Join(dir, strings.Repeat("x", i+1)), "")
	}
	var mu sync.Mutex
	visited := map[string]bool{}
	_, err := tooltest.Open(t, New(opts)).Walk(t.Context(), WalkOptions{Start: ".", Each: func(_ int, e *Entry) {
		mu.Lock()
		defer mu.Unlock()
		visited[e.Path] = true
	}})
	if len(visited) != 3*batchSize+1 || err != nil {
		t.Errorf("%d visited, %v", len(visited), err)
	}
}

// Folders are read at the same time.
func TestWalkWorksInParallel(t *testing.T) {
	if Workers() < 2 {
		t.Skip("one processor")
	}
	opts, _ := place(t, map[string]string{"a/x": "", "b/x": ""})
	w := tooltest.Open(t, New(opts))
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var both sync.WaitGroup
		both.Add(2)
		met := make(chan struct{})
		go func() { both.Wait(); close(met) }()
		if _, err := w.Walk(ctx, WalkOptions{Start: ".", Each: func(int, *Entry) {
			both.Done()
			select {
			case <-met:
			case <-ctx.Done():
			}
		}}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}

// A canceled walk stops, although there is more to visit.
func TestWalkIsCanceled(t *testing.T) {
	opts, dir := place(t, nil)
	for i := range 100 {
		tooltest.Put(t, filepath.Join(dir, strconv.Itoa(i), "x"), "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tooltest.Open(t, New(opts)).Walk(ctx, WalkOptions{Start: ".", Each: func(int, *Entry) {}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// A folder that is gone when it is to be entered is reported, and read if it is back.
func TestWalkReportsFoldersThatFail(t *testing.T) {
	for name, back := range map[string]bool{"gone": false, "back": true} {
		opts, dir := place(t, map[string]string{"sub/x": "", "y": ""})
		w := tooltest.Open(t, New(opts))
		remove := func(e *Entry) bool { return os.RemoveAll(filepath.Join(dir, e.Path)) == nil }
		var mu sync.Mutex
		var visited, failed []string
		walk := WalkOptions{Start: ".", Enter: remove, Each: func(_ int, e *Entry) {
			mu.Lock()
			defer mu.Unlock()
			visited = append(visited, e.Path)
		}}
		walk.Failed = func(path string, err error) bool {
			failed = append(failed, path)
			tooltest.Put(t, filepath.Join(dir, path, "x"), "")
			return back && errors.Is(err, os.ErrNotExist)
		}
		left, err := w.Walk(t.Context(), walk)
		if err != nil || !slices.Equal(failed, []string{"sub"}) || slices.Contains(visited, "sub/x") != back || strings.Contains(left.Note(), "1 folder could not be read") == back {
			t.Errorf("%s: visited %q, failed %q, %s %v", name, visited, failed, left.Note(), err)
		}
		walk.Failed, visited = nil, nil
		if left, err := w.Walk(t.Context(), walk); err != nil || !slices.Equal(visited, []string{"y"}) || !strings.Contains(left.Note(), "1 folder could not be read") {
			t.Errorf("%s, not reported: visited %q, %v", name, visited, err)
		}
		walk.Start, visited = "start", nil
		if _, err := w.Walk(t.Context(), walk); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no start: %v", err)
		}
		walk.Failed = func(path string, _ error) bool {
			tooltest.Put(t, filepath.Join(dir, path, "x"), "")
			return back
		}
		if _, err := w.Walk(t.Context(), walk); (err == nil) != back || back && !slices.Equal(visited, []string{"start/x"}) {
			t.Errorf("%s as the start: visited %q, %v", name, visited, err)
		}
	}
}

// A worker without a task waits as long as another one may find folders, and ends with it.
func TestWorkersWaitForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := &walker{}, &folder{}
		w.more.L = &w.mu
		w.push(task{folder: f})
		if _, ok := w.pop(); !ok {
			t.Fatal("there is no task")
		}
		got := make(chan bool, 2)
		for range 2 {
			go func() {
				_, ok := w.pop()
				got <- ok
			}()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("a worker did not wait")
		}
		w.push(task{folder: f})
		if !<-got {
			t.Error("no worker got the task")
		}
		w.done()
		synctest.Wait()
		if len(got) > 0 {
			t.Error("a worker did not wait for the last one")
		}
		w.done()
		if <-got {
			t.Error("there is a task")
		}
	})
}
