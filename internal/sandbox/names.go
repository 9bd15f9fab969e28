package sandbox

import (
	"os"
	"strings"
	"sync"
)

// maxNames limits how many names are collected. A program that exceeds it gains
// nothing: files that it creates afterwards are reported instead of removed.
const maxNames = 1 << 18

// Renamed comes before the name of a file or folder that was renamed, which is also collected
// without it.
const Renamed = "/"

// Names collects the names under which programs have tried to create, write, rename or link
// files, folders and links, each with the folder. A name is added before the kernel acts on
// it. The zero value is empty. Names is safe for concurrent use.
//
// A program with several threads can hide a name by changing it between the check and the
// use.
type Names struct {
	// Log is where each new name is appended as "FOLDER/NAME" and a NUL byte, see Has. If it
	// is nil, names are kept only in memory.
	Log *os.File

	mu  sync.Mutex
	all map[string]struct{}
}

// Has reports whether a program has used a name in a folder, which is identified by its
// device and inode number as DEVICE:INODE. If a program has named a folder in a way that can
// mean several, such as through a link, the name counts for all folders.
func (n *Names) Has(folder, name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, in := n.all[folder+"/"+name]
	_, anywhere := n.all["/"+name]
	return in || anywhere
}

// beat changes the time of the log.
func (n *Names) beat() { _, _ = n.Log.WriteString("\x00") }

// add adds a name in a folder; "" stands for all folders.
func (n *Names) add(folder, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]struct{}{}
	}
	if entry := folder + "/" + name; len(n.all) < maxNames {
		if _, known := n.all[entry]; !known && n.Log != nil {
			_, _ = n.Log.WriteString(entry + "\x00") // a full disk must not stop the program
		}
		n.all[entry] = struct{}{}
	}
}

// Logged returns the names in the content of a log.
func Logged(log []byte) *Names {
	n := &Names{all: map[string]struct{}{}}
	for entry := range strings.SplitSeq(string(log), "\x00") {
		n.all[entry] = struct{}{}
	}
	return n
}
