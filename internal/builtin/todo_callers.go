package builtin

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// todoCallers says which revision of a list each caller saw last.
type todoCallers struct {
	Seen map[string]int64 `json:"seen"`
	// Ended is what callers saw that are processes and have ended: whoever
	// comes new may be their heir. An agent that starts each of its calls
	// through a shell of its own is a new process each time.
	Ended int64 `json:"ended,omitempty"`
	// Written is when the run that wrote last was about to end: nobody who
	// waited for its result can have begun before.
	Written int64 `json:"written,omitempty"`
}

// maxCallers bounds the callers remembered; those that saw the least go first.
const maxCallers = 200

const (
	agentCaller   = "agent:"
	processCaller = "process:"
)

// caller names whoever makes the calls of this run: the agent, if the options
// name it, else the process that started us, told from a later one of the same
// id.
func (l *todoList) caller() string {
	if l.opts.Caller != "" {
		return agentCaller + l.opts.Caller
	}
	pid := os.Getppid()
	birth, _ := birthOf(pid)
	return processCaller + strconv.Itoa(pid) + ":" + birth
}

// hasEnded reports whether a caller is a process that has ended.
func hasEnded(caller string) bool {
	name, ok := strings.CutPrefix(caller, processCaller)
	if !ok {
		return false
	}
	id, birth, _ := strings.Cut(name, ":")
	pid, err := strconv.Atoi(id)
	if err != nil {
		return true
	}
	now, ok := birthOf(pid)
	return !ok || now != birth
}

// retire folds what ended callers saw into one number.
func (c *todoCallers) retire() {
	for caller, seen := range c.Seen {
		if hasEnded(caller) {
			c.Ended = max(c.Ended, seen)
			delete(c.Seen, caller)
		}
	}
}

// by is the revision that a caller saw last.
func (c *todoCallers) by(caller string) int64 {
	if seen, ok := c.Seen[caller]; ok || strings.HasPrefix(caller, agentCaller) {
		return seen
	}
	return c.Ended
}

// decodeCallers reads what is known of callers. What cannot be read is not
// known: then nobody has seen anything, and nothing is taken from a list.
func decodeCallers(data []byte) *todoCallers {
	c := &todoCallers{}
	if json.Unmarshal(data, c) != nil {
		*c = todoCallers{}
	}
	if c.Seen == nil {
		c.Seen = map[string]int64{}
	}
	return c
}

// known is what is known of callers.
func (p *todoPlace) known() *todoCallers {
	data, err := p.dir.Read(p.callers)
	if err != nil {
		data = nil
	}
	c := decodeCallers(data)
	c.retire()
	return c
}

// mark remembers that a caller has seen a revision, and whether it wrote it.
// Where that cannot be kept, the caller has seen nothing.
func (p *todoPlace) mark(ctx context.Context, caller string, revision int64, wrote bool) {
	if revision == 0 || !wrote && p.known().Seen[caller] >= revision {
		return
	}
	_ = p.dir.Update(ctx, p.callers, func(old []byte) ([]byte, error) {
		c := decodeCallers(old)
		c.retire()
		c.Seen[caller] = max(c.Seen[caller], revision)
		if wrote {
			c.Written = max(c.Written, revision, time.Now().UnixMicro())
		}
		c.prune()
		return json.Marshal(c)
	})
}

func (c *todoCallers) prune() {
	if len(c.Seen) <= maxCallers {
		return
	}
	all := make([]int64, 0, len(c.Seen))
	for _, seen := range c.Seen {
		all = append(all, seen)
	}
	slices.Sort(all)
	least := all[len(all)-maxCallers]
	for caller, seen := range c.Seen {
		if seen < least {
			delete(c.Seen, caller)
		}
	}
}
