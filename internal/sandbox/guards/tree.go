package guards

import (
	"os"
	"sync"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/git"
)

// Tree is a folder that sandboxed programs may write, such as the workspace. It is opened
// on first use and is safe for concurrent use.
type Tree struct {
	dir   *workspace.Dir
	user  git.User
	path  string // absolute
	logs  string
	ofGit bool // it is the git folder that a linked worktree shares with others

	once sync.Once
	root *os.Root
	real string // its path with links resolved
	err  error

	sharing sync.Mutex
	others  map[string]*Tree // by path: the git folder that this linked worktree shares with others, other folders
}

// New returns the tree at an absolute path without opening anything.
// logs is a folder of toolreg for what must survive if toolreg is killed; "" means none.
func New(path string, user git.User, logs string) *Tree {
	return &Tree{dir: workspace.New(workspace.Options{Dir: path}), user: user, path: path, logs: logs}
}

func (t *Tree) open() error {
	t.once.Do(func() {
		if t.root, t.err = t.dir.Root(); t.err == nil {
			t.real, t.err = t.dir.Path()
		}
	})
	return t.err
}

// other returns another tree that the programs of this tree may write. It is closed with this
// tree.
func (t *Tree) other(path string) *Tree {
	t.sharing.Lock()
	defer t.sharing.Unlock()
	if t.others == nil {
		t.others = map[string]*Tree{}
	}
	if t.others[path] == nil {
		t.others[path] = New(path, t.user, "")
	}
	return t.others[path]
}

// Close releases the tree; nothing can be opened after that.
func (t *Tree) Close() error {
	t.sharing.Lock()
	defer t.sharing.Unlock()
	for _, other := range t.others {
		_ = other.Close() // only read
	}
	return t.dir.Close()
}
