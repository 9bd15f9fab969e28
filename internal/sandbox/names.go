package sandbox

import (
	"os"
	"sync"
)

// maxNames limits how many names are collected. A program that exceeds it gains
// nothing: files that it creates afterwards are reported instead of removed.
const maxNames = 1 << 18

// Names collects the base names that programs have tried to use for files, folders and
// links: when they created, renamed or linked one. A name is added before the kernel acts
// on it. The zero value is empty. Names is safe for concurrent use.
//
// A program with several threads can hide a name by changing it between the check and the
// use.
type Names struct {
	// Log is where each new name is appended, followed by a NUL byte; nil: nowhere.
	Log *os.File

	mu  sync.Mutex
	all map[string]struct{}
}

// Has reports whether a program has used a name.
func (n *Names) Has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.all[name]
	return ok
}

// beat changes the time of the log.
func (n *Names) beat() { _, _ = n.Log.WriteString("\x00") }

func (n *Names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]struct{}{}
	}
	if len(n.all) < maxNames {
		if _, known := n.all[name]; !known && n.Log != nil {
			_, _ = n.Log.WriteString(name + "\x00") // a full disk must not stop the program
		}
		n.all[name] = struct{}{}
	}
}
