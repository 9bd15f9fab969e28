// Package console has what the console of serve shows: the calls that run and that ran, the
// questions that wait for a person, and the servers; and takes the person's answers. It is an
// HTTP handler for people who are already known. All texts are untrusted, and are escaped
// before they are sent.
package console

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/ui"
)

const (
	// maxEnded is how many calls that have ended are remembered.
	maxEnded = 10_000
	// maxRunning is how many running calls are shown.
	maxRunning = 200
)

// Server is the state of an MCP server or an API.
type Server struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Error  string `json:"error,omitempty"`
	Tools  int    `json:"tools"`
	Starts bool   `json:"starts"` // it can be started again
}

// Console collects what happens. It is safe for concurrent use. Create it with [New].
type Console struct {
	mu        sync.Mutex
	serial    int // of the last call
	running   map[int]*call
	changes   int    // how often running has changed
	ended     []call // the latest, in a ring
	endedAll  int    // number of calls that have ended so far
	questions []*question
	asked     int // how often questions has changed
}

// New returns a console on which nothing has happened.
func New() *Console { return &Console{running: map[int]*call{}} }

// call is a call as browsers see it.
type call struct {
	ID       int     `json:"id"`
	Start    int64   `json:"start"` // Unix time in milliseconds
	Tool     string  `json:"tool"`
	Caller   string  `json:"caller,omitempty"`   // name of the token
	Client   string  `json:"client,omitempty"`   // name that the client reports
	Script   bool    `json:"script,omitempty"`   // a script makes it
	Decision string  `json:"decision,omitempty"` // of policy
	Outcome  string  `json:"outcome,omitempty"`  // "" while it runs
	Code     string  `json:"code,omitempty"`     // of an error
	Ms       float64 `json:"ms,omitempty"`
	Waited   float64 `json:"waited,omitempty"` // ms that people took to answer
	Size     int64   `json:"size,omitempty"`   // bytes of the result
}

func newCall(id int, e *audit.Entry) call {
	c := call{
		ID: id, Start: e.Time.UnixMilli(), Tool: short(e.Tool), Script: e.Parent != "", Decision: e.Decision,
		Outcome: string(e.Outcome), Code: e.Code, Ms: e.DurationMs, Waited: e.WaitedMs, Size: e.ResultBytes,
	}
	if e.Caller != nil {
		c.Caller, c.Client = short(e.Caller.Name), short(e.Caller.Client)
	}
	return c
}

// maxName is the maximum length of a name in a list, in bytes.
const maxName = 200

// short escapes a name for a list.
func short(s string) string {
	if len(s) > maxName {
		s = s[:maxName] + "…"
	}
	return ui.Line(s)
}

// Began shows a call until ended is called with its outcome, or with nil if the call goes on
// elsewhere. It is an engine.Deps.Began.
func (c *Console) Began(e audit.Entry) (ended func(*audit.Entry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	one := newCall(c.serial, &e)
	one.Outcome = ""
	c.running[one.ID] = &one
	c.changes++
	return func(e *audit.Entry) { c.end(one.ID, e) }
}

func (c *Console) end(id int, e *audit.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
	c.changes++
	if e == nil {
		return
	}
	if one := newCall(id, e); len(c.ended) < maxEnded {
		c.ended = append(c.ended, one)
	} else {
		c.ended[c.endedAll%maxEnded] = one
	}
	c.endedAll++
}

type seen struct {
	calls, running, questions int
	servers                   []byte // JSON
	asked                     time.Time
}

// update is what has changed since a browser has seen it. nil means nothing.
type update struct {
	Calls     []call     `json:"calls,omitempty"`   // that have ended, in that order
	Running   *[]call    `json:"running,omitempty"` // all, oldest first, at most maxRunning
	Count     int        `json:"count,omitempty"`   // with Running: of all that run
	Questions *[]summary `json:"questions,omitempty"`
	Servers   *[]Server  `json:"servers,omitempty"`
}

// since returns what a browser has not seen, and whether there is anything.
func (c *Console) since(s *seen) (u update, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := max(s.calls, c.endedAll-len(c.ended)); n < c.endedAll; n++ {
		u.Calls = append(u.Calls, c.ended[n%maxEnded])
	}
	if s.running != c.changes {
		running := make([]call, 0, min(len(c.running), maxRunning))
		for _, one := range c.running {
			running = append(running, *one)
		}
		slices.SortFunc(running, func(a, b call) int { return cmp.Compare(a.ID, b.ID) })
		u.Count = len(running)
		running = running[:min(len(running), maxRunning)]
		u.Running = &running
	}
	for _, q := range c.questions {
		if q.left != nil && !q.Left && q.left() {
			q.Left = true
			c.asked++
		}
	}
	if s.questions != c.asked {
		questions := make([]summary, len(c.questions))
		for i, q := range c.questions {
			questions[i] = q.summary
		}
		u.Questions = &questions
	}
	any = len(u.Calls) > 0 || u.Running != nil || u.Questions != nil
	s.calls, s.running, s.questions = c.endedAll, c.changes, c.asked
	return u, any
}
