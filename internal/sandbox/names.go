package sandbox

import "sync"

// maxNames limits how many names are collected. A program that uses more gains nothing:
// what it creates then is not removed, but reported.
const maxNames = 1 << 18

// Names collects the names, without folders, that programs have tried to give to files,
// folders and links: when they created, renamed or linked one. A name is in it before the
// kernel acts upon it. Its zero value is empty; it is safe for concurrent use.
//
// A program with several threads can keep a name out by changing it in the moment between.
type Names struct {
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

func (n *Names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]struct{}{}
	}
	if len(n.all) < maxNames {
		n.all[name] = struct{}{}
	}
}
