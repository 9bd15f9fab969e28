package workspace

import (
	"sync"
	"sync/atomic"
)

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
