package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/text"
)

// quotas counts the calls that clients may make (serve.limits). The zero value has none. It is
// safe for concurrent use, and outlives a change of the settings.
type quotas struct {
	mu    sync.Mutex
	spans map[quota]*span
	swept time.Time
}

// quota is what is counted together: calls of one client, under a limit whose number of calls
// and time may change.
type quota struct {
	caller, client, group, tool string
	rank                        int
}

// span is the time in which calls are counted.
type span struct {
	end   time.Time
	calls int
}

// callLimits are the limits for the calls of clients, and what was counted.
type callLimits struct {
	limits []settings.CallLimit
	local  *quotas
	shared *store.Store // what several processes count together; nil: local counts
}

// count counts a call of a client. It returns an *exec.LimitedError, and counts nothing, if one
// of the limits for the call is reached. The person at the command line has no limits.
func (c *callLimits) count(ctx context.Context, t *registry.Tool) error {
	name := caller.Name(ctx)
	if name == "" {
		return nil
	}
	var limits []settings.CallLimit
	for _, l := range c.limits {
		matches := func(spelling string) bool { return text.MatchNameFold(l.Tool, spelling) }
		ofGroup := func(group string) bool { return text.MatchNameFold(l.Group, group) }
		if (l.Client == "" || text.MatchNameFold(l.Client, name)) && (l.Group == "" || slices.ContainsFunc(caller.Groups(ctx), ofGroup)) && (l.Tool == "" || slices.ContainsFunc(t.Called(), matches)) {
			limits = append(limits, l)
		}
	}
	if c.shared != nil {
		return takeShared(ctx, c.shared, t.Name, name, limits)
	}
	return c.local.take(t.Name, name, limits, time.Now())
}

func (q *quotas) take(tool, name string, limits []settings.CallLimit, now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.swept) > time.Minute {
		maps.DeleteFunc(q.spans, func(_ quota, s *span) bool { return !now.Before(s.end) })
		q.swept = now
	}
	var spans []*span
	for _, l := range limits {
		key := quota{name, l.Client, l.Group, l.Tool, l.Rank}
		s := q.spans[key]
		if s == nil || !now.Before(s.end) {
			s = &span{end: now.Add(l.Per)}
			if q.spans == nil {
				q.spans = map[quota]*span{}
			}
			q.spans[key] = s
		}
		if s.calls >= l.Calls {
			return &exec.LimitedError{Tool: tool, Calls: l.Calls, Per: l.Per, Again: max(s.end.Sub(now).Round(time.Second), time.Second), Origin: l.Origin.String()}
		}
		if !slices.Contains(spans, s) { // two scopes may have the same limit
			spans = append(spans, s)
		}
	}
	for _, s := range spans {
		s.calls++
	}
	return nil
}
