package builtin

import (
	"context"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
)

// walkOptions say what a walk through the workspace visits.
type walkOptions struct {
	start   string           // folder relative to the workspace, "." for itself
	respect bool             // honour ignore files
	enter   func(*step) bool // whether a folder is entered; nil: all
	// take says by the name alone whether a file or link is visited; nil: all.
	take func(*step) bool
	// named tells entries that ignore files do not count for; nil: none.
	named func(*step) bool
	// visit is called for every file and link taken, from several goroutines;
	// worker counts from 0 to workers()-1.
	visit func(worker int, s *step)
}

// step is one entry that a walk comes to. It counts only during the call.
type step struct {
	path string // relative to the workspace
	name string
	kind fs.FileMode // type bits
	dir  *openDir    // the folder that holds it
}

// walked counts what a walk left out.
type walked struct {
	ignored    atomic.Int64 // entries left out by ignore files
	unreadable atomic.Int64 // folders that could not be read
}

// workers is how many goroutines a walk uses.
func workers() int { return max(1, min(runtime.GOMAXPROCS(0), 8)) }

// walk visits everything below a folder with several goroutines, in no order.
// No link is followed. It returns when all is visited or ctx is done; then the
// error is ctx's.
func (w *workspace) walk(ctx context.Context, opts walkOptions) (*walked, error) {
	root, err := w.open()
	if err != nil {
		return nil, err
	}
	start, err := openDirIn(root, opts.start)
	if err != nil {
		return nil, err
	}
	wk := &walker{walkOptions: opts}
	wk.more.L = &wk.mu
	var rules *ignoring
	if opts.respect {
		rules = w.ignoringIn(root, opts.start)
	}
	path := opts.start
	if path == "." {
		path = ""
	}
	wk.push(task{folder: &folder{dir: start, path: path, rules: rules}})
	stop := context.AfterFunc(ctx, wk.stop)
	defer stop()
	var wg sync.WaitGroup
	for i := range workers() {
		wg.Go(func() { wk.work(i) })
	}
	wg.Wait()
	return &wk.walked, ctx.Err()
}

// dirent is an entry of a folder.
type dirent struct {
	name string
	kind fs.FileMode // type bits
}

func (e *dirent) isDir() bool { return e.kind.IsDir() }

func (w *walker) work(worker int) {
	for {
		t, ok := w.pop()
		if !ok {
			return
		}
		if !w.isStopped() { // the rest is popped all the same, to close folders
			w.run(worker, t)
		}
		t.folder.release()
		w.done()
	}
}

func (w *walker) run(worker int, t task) {
	switch {
	case t.batch != nil:
		w.visitAll(worker, t.batch)
	case t.below != "":
		dir, err := t.folder.dir.dir(t.below)
		if err != nil {
			w.unreadable.Add(1)
			return
		}
		f := &folder{dir: dir, path: under(t.folder.path, t.below), rules: t.folder.rules}
		f.tasks.Add(1)
		w.read(worker, f)
		f.release()
	default:
		w.read(worker, t.folder)
	}
}

// read reads a folder, visits its files and leaves its folders as tasks.
func (w *walker) read(worker int, f *folder) {
	entries, err := f.dir.entries()
	if err != nil {
		w.unreadable.Add(1)
	}
	if w.respect {
		f.rules = f.rules.enter(f.dir, f.path, entries)
	}
	var folders []task
	var files []step
	s := step{dir: f.dir} // one for all: a step of each would be most of the garbage of a walk
	for _, e := range entries {
		s.name, s.kind = e.name, e.kind
		isDir := e.isDir()
		if !isDir && s.kind != 0 && s.kind != fs.ModeSymlink {
			continue
		}
		s.path = under(f.path, s.name)
		wanted := w.take
		if isDir {
			wanted = w.enter
		}
		if wanted != nil && !wanted(&s) {
			continue
		}
		if w.respect && f.rules.ignored(s.path, isDir) && (w.named == nil || !w.named(&s)) {
			w.ignored.Add(1)
			continue
		}
		if isDir {
			folders = append(folders, task{folder: f, below: s.name})
			continue
		}
		files = append(files, s)
	}
	if len(folders) > 0 {
		w.push(folders...)
	}
	for len(files) > batchSize {
		w.push(task{folder: f, batch: files[:batchSize:batchSize]})
		files = files[batchSize:]
	}
	w.visitAll(worker, files)
}

func (w *walker) visitAll(worker int, files []step) {
	for i := range files {
		if i%8 == 7 && w.isStopped() {
			return
		}
		w.visit(worker, &files[i])
	}
}

func under(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
