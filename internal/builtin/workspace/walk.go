package workspace

import (
	"cmp"
	"context"
	"io/fs"
	"runtime"
	"sync"
	"sync/atomic"
)

// WalkOptions describe what a walk through the workspace visits.
type WalkOptions struct {
	Start   string            // folder relative to the workspace, which is "."
	Respect bool              // honor ignore files, and skip installed packages
	Special bool              // visit sockets, pipes and devices, too
	Enter   func(*Entry) bool // whether to enter a folder; nil means all
	// Match reports by name whether to visit a file or link; nil means all.
	Match func(*Entry) bool
	// Forced reports entries to which ignore files do not apply; nil means none.
	Forced func(*Entry) bool
	// Hides reports entries that rules hide from the caller; nil means none.
	Hides func(path string) bool
	// Each is called for every file and link visited, from several goroutines. worker
	// is from 0 to Workers()-1.
	Each func(worker int, s *Entry)
	// Failed is called for every folder that cannot be read, from several goroutines, and
	// reports whether to try again; nil means such folders are only counted.
	Failed func(path string, err error) (again bool)
}

// Entry is one entry that a walk visits. It is valid only during the call.
type Entry struct {
	Path string // relative to the workspace
	Name string
	Kind fs.FileMode // type bits
	Dir  *Folder     // the folder that contains it
}

// Packages is the folder of installed packages. Walks skip it as if an ignore file
// excluded it.
const Packages = "node_modules"

// LeftOut counts the entries that a walk visited and those that it skipped.
type LeftOut struct {
	visited    atomic.Int64 // files and links
	ignored    atomic.Int64 // entries excluded by ignore files
	hidden     atomic.Int64 // entries excluded by rules
	unreadable atomic.Int64 // folders that could not be read
}

// Workers returns the number of goroutines of a walk.
func Workers() int { return max(1, min(runtime.GOMAXPROCS(0), 8)) }

// Walk visits everything below a folder with several goroutines, in no
// particular order, without following links. It returns when done, or with the
// error of ctx when ctx is canceled.
func (w *Dir) Walk(ctx context.Context, opts WalkOptions) (*LeftOut, error) {
	root, err := w.Root()
	if err != nil {
		return nil, err
	}
	if opts.Failed == nil {
		opts.Failed = func(string, error) bool { return false }
	}
	start, err := w.OpenFolder(opts.Start)
	if err != nil && opts.Failed(opts.Start, err) {
		start, err = w.OpenFolder(opts.Start)
	}
	if err != nil {
		return nil, err
	}
	wk := &walker{WalkOptions: opts}
	wk.more.L = &wk.mu
	var rules *IgnoreRules
	if opts.Respect {
		rules = w.IgnoreRules(root, opts.Start)
	}
	path := opts.Start
	if path == "." {
		path = ""
	}
	wk.push(task{folder: &folder{dir: start, path: path, rules: rules}})
	stop := context.AfterFunc(ctx, wk.stop)
	defer stop()
	var wg sync.WaitGroup
	for i := range Workers() {
		wg.Go(func() { wk.work(i) })
	}
	wg.Wait()
	return &wk.LeftOut, ctx.Err()
}

// OpenFolder opens the folder at rel, which [Dir.Param] returned or a search found.
func (w *Dir) OpenFolder(rel string) (*Folder, error) {
	entered, err := w.enter(rel, false)
	if err != nil {
		return nil, err
	}
	defer entered.Close()
	return OpenFolder(entered, ".")
}

func (w *walker) work(worker int) {
	for {
		t, ok := w.pop()
		if !ok {
			return
		}
		if !w.isStopped() { // remaining tasks are still popped, to close their folders
			w.runTask(worker, t)
		}
		t.folder.release()
		w.done()
	}
}

func (w *walker) runTask(worker int, t task) {
	switch {
	case t.batch != nil:
		w.eachOf(worker, t.batch)
	case t.below != "":
		dir, err := t.folder.dir.dir(t.below)
		if err != nil && w.Failed(Join(t.folder.path, t.below), err) {
			dir, err = t.folder.dir.dir(t.below)
		}
		if err != nil {
			w.unreadable.Add(1)
			return
		}
		f := &folder{dir: dir, path: Join(t.folder.path, t.below), rules: t.folder.rules}
		f.tasks.Add(1)
		w.readFolder(worker, f)
		f.release()
	default:
		w.readFolder(worker, t.folder)
	}
}

// readFolder reads a folder, visits its files and queues its folders as tasks.
func (w *walker) readFolder(worker int, f *folder) {
	entries, err := f.dir.Entries()
	if err != nil {
		w.unreadable.Add(1)
		w.Failed(cmp.Or(f.path, "."), err)
	}
	if w.Respect {
		f.rules = f.rules.Enter(f.dir, f.path, entries)
	}
	var folders []task
	var files []Entry
	s := Entry{Dir: f.dir} // shared: one per entry would be most of the garbage of a walk
	for _, e := range entries {
		s.Name, s.Kind = e.Name(), e.Type()
		isDir := e.IsDir()
		if !isDir && s.Kind != 0 && s.Kind != fs.ModeSymlink && !w.Special {
			continue
		}
		s.Path = Join(f.path, s.Name)
		wanted := w.Match
		if isDir {
			wanted = w.Enter
		}
		if wanted != nil && !wanted(&s) {
			continue
		}
		if w.Respect && (isDir && s.Name == Packages || f.rules.Ignored(s.Path, isDir)) &&
			(w.Forced == nil || !w.Forced(&s)) {
			w.ignored.Add(1)
			continue
		}
		if w.Hides != nil && w.Hides(s.Path) {
			w.hidden.Add(1)
			continue
		}
		if isDir {
			folders = append(folders, task{folder: f, below: s.Name})
			continue
		}
		files = append(files, s)
	}
	w.push(folders...)
	w.visited.Add(int64(len(files)))
	for len(files) > batchSize {
		w.push(task{folder: f, batch: files[:batchSize:batchSize]})
		files = files[batchSize:]
	}
	w.eachOf(worker, files)
}

func (w *walker) eachOf(worker int, files []Entry) {
	for i := range files {
		if i%8 == 7 && w.isStopped() {
			return
		}
		w.Each(worker, &files[i])
	}
}

// Join returns the path of an entry of dir, which is "" for the workspace.
func Join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// folder is an open folder. It is closed when the last task in it is done.
type folder struct {
	dir   *Folder
	path  string // "" for the workspace
	rules *IgnoreRules
	tasks atomic.Int32
}

func (f *folder) release() {
	if f.tasks.Add(-1) == 0 {
		f.dir.Close()
	}
}

// task is a folder to read, which is not open yet if below is set, or a batch
// of entries of one folder. Batches keep all workers busy if one folder has
// thousands of files.
type task struct {
	folder *folder
	below  string
	batch  []Entry
}

const batchSize = 64

type walker struct {
	WalkOptions
	LeftOut

	mu      sync.Mutex
	more    sync.Cond
	tasks   []task // a stack: depth-first keeps few folders open
	running int
	stopped bool
}

func (w *walker) push(tasks ...task) {
	for _, t := range tasks {
		t.folder.tasks.Add(1)
	}
	w.mu.Lock()
	w.tasks = append(w.tasks, tasks...)
	w.mu.Unlock()
	w.more.Broadcast()
}

// pop waits for a task. It returns false if no work is left.
func (w *walker) pop() (task, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.tasks) == 0 && w.running > 0 && !w.stopped {
		w.more.Wait()
	}
	if len(w.tasks) == 0 {
		return task{}, false
	}
	t := w.tasks[len(w.tasks)-1]
	w.tasks = w.tasks[:len(w.tasks)-1]
	w.running++
	return t, true
}

func (w *walker) done() {
	w.mu.Lock()
	w.running--
	idle := w.running == 0
	w.mu.Unlock()
	if idle {
		w.more.Broadcast()
	}
}

func (w *walker) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.more.Broadcast()
}

func (w *walker) isStopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}
