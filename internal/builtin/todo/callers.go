package todo

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// callers holds the revision of a list that each caller saw last. Revision 0 is
// the empty list, which everybody has seen.
type callers struct {
	Seen map[string]int64 `json:"seen,omitempty"`
	// Ended is the last revision seen by callers that are processes and have ended: a
	// new caller may be their successor. An agent that starts each call through a
	// separate shell is a new process each time.
	Ended int64 `json:"ended,omitempty"`
	// Written is when the last writing run was about to end: nobody who waited for
	// its result can have started before.
	Written int64 `json:"written,omitempty"`
}

// maxCallers bounds the remembered callers; those that saw the oldest revisions
// are dropped first.
const maxCallers = 200

const (
	agentCaller   = "agent:"
	processCaller = "process:"
)

// caller identifies who makes the calls of this run: the agent, if the options
// name it, otherwise the process that started us. Reuse of a process id does no
// harm: it only keeps entries that could have been dropped.
func (o *Options) caller() string {
	if o.Caller != "" {
		return agentCaller + o.Caller
	}
	return processCaller + strconv.Itoa(os.Getppid())
}

// hasEnded reports whether a caller is a process that has ended.
func hasEnded(caller string) bool {
	id, ok := strings.CutPrefix(caller, processCaller)
	if !ok {
		return false
	}
	pid, err := strconv.Atoi(id)
	if err != nil {
		return true
	}
	p, err := os.FindProcess(pid)
	return err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// by is the revision that a caller saw last.
func (c *callers) by(caller string) int64 {
	if seen, ok := c.Seen[caller]; ok || strings.HasPrefix(caller, agentCaller) {
		return seen
	}
	ended := c.Ended
	for other, seen := range c.Seen {
		if seen > ended && hasEnded(other) {
			ended = seen
		}
	}
	return ended
}

// mark records that a caller has seen a revision.
func (c *callers) mark(caller string, revision int64) {
	if c.Seen == nil {
		c.Seen = map[string]int64{}
	}
	for other, seen := range c.Seen {
		if hasEnded(other) {
			c.Ended = max(c.Ended, seen)
			delete(c.Seen, other)
		}
	}
	c.Seen[caller] = max(c.Seen[caller], revision)
	for len(c.Seen) > maxCallers {
		callers := slices.Collect(maps.Keys(c.Seen))
		delete(c.Seen, slices.MinFunc(callers, func(a, b string) int { return cmp.Compare(c.Seen[a], c.Seen[b]) }))
	}
}
