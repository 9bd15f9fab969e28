// Package quota counts the calls of clients and enforces the limits of the settings (serve.limits).
// Counts survive a change of the settings.
package quota

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/text"
)

// Limits enforces the limits for the calls of clients. It is safe for concurrent use.
type Limits struct {
	limits  []settings.CallLimit
	counter counter
}

// New returns limits whose calls are counted by shared, or in this process if shared is nil. If
// earlier is not nil, the new limits continue its counts.
func New(limits []settings.CallLimit, shared *store.Store, earlier *Limits) *Limits {
	switch {
	case earlier != nil:
		return &Limits{limits, earlier.counter}
	case shared != nil:
		return &Limits{limits, shared}
	}
	return &Limits{limits, &local{}}
}

// counter counts calls: those of this process (*local), or those of several together
// (*store.Store).
type counter interface {
	// Count adds one to each span. If one of them is full, it adds nothing and returns the index
	// of that one and how long it lasts; otherwise full is -1.
	Count(ctx context.Context, spans []store.Span) (full int, left time.Duration, err error)
}

// Count counts a call of a client. It returns an *exec.LimitedError, and counts nothing, if one
// of the limits for the call is reached. The person at the command line has no limits. If a
// shared counter is away, the call is denied.
func (l *Limits) Count(ctx context.Context, t *registry.Tool) error {
	name := caller.Name(ctx)
	if name == "" {
		return nil
	}
	limits := slices.DeleteFunc(slices.Clone(l.limits), func(one settings.CallLimit) bool {
		matches := func(spelling string) bool { return text.MatchNameFold(one.Tool, spelling) }
		ofGroup := func(group string) bool { return text.MatchNameFold(one.Group, group) }
		return one.Client != "" && !text.MatchNameFold(one.Client, name) ||
			one.Group != "" && !slices.ContainsFunc(caller.Groups(ctx), ofGroup) ||
			one.Tool != "" && !slices.ContainsFunc(t.Called(), matches)
	})
	spans, of := spansOf(name, limits)
	if len(spans) == 0 {
		return nil
	}
	full, left, err := l.counter.Count(ctx, spans)
	if _, away := errors.AsType[*store.UnavailableError](err); away {
		return &exec.Denied{Tool: t.Name, Reason: "the number of calls is limited, and " + err.Error(),
			Origin: of[0].Origin.String(), Later: true}
	}
	if err != nil || full < 0 {
		return err
	}
	return &exec.LimitedError{
		Tool: t.Name, Calls: of[full].Calls, Per: of[full].Per,
		Again: max(left.Round(time.Second), time.Second), Origin: of[full].Origin.String(),
	}
}

// spansOf returns the spans in which a call of the client counts, and the limit of each. A changed
// number or time does not start a new span. If two scopes of the settings have the same limit, the
// lower number applies.
func spansOf(client string, limits []settings.CallLimit) (spans []store.Span, of []settings.CallLimit) {
	for _, l := range limits {
		span := store.Span{ID: strings.Join([]string{client, l.Client, l.Group, l.Tool, strconv.Itoa(l.Rank)}, "\x00"),
			Most: l.Calls, Per: l.Per}
		switch i := slices.IndexFunc(spans, func(other store.Span) bool { return other.ID == span.ID }); {
		case i < 0:
			spans, of = append(spans, span), append(of, l)
		case span.Most < spans[i].Most:
			spans[i], of[i] = span, l
		}
	}
	return spans, of
}

// local counts the calls of this process. The zero value has counted none. It is safe for concurrent
// use.
type local struct {
	mu    sync.Mutex
	spans map[string]*counted // by the id of the span
	swept time.Time
}

// counted is how many calls a span has by now.
type counted struct {
	end   time.Time
	calls int
}

// Count implements [counter].
func (c *local) Count(_ context.Context, spans []store.Span) (full int, left time.Duration, err error) {
	full, left = c.count(spans, time.Now())
	return full, left, nil
}

func (c *local) count(spans []store.Span, now time.Time) (full int, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.swept) > time.Minute {
		maps.DeleteFunc(c.spans, func(_ string, n *counted) bool { return !now.Before(n.end) })
		c.swept = now
	}
	if c.spans == nil {
		c.spans = map[string]*counted{}
	}
	for i, span := range spans {
		n := c.spans[span.ID]
		if n == nil || !now.Before(n.end) {
			n = &counted{end: now.Add(span.Per)}
			c.spans[span.ID] = n
		}
		if n.calls >= span.Most {
			return i, n.end.Sub(now)
		}
	}
	for _, span := range spans {
		c.spans[span.ID].calls++
	}
	return -1, 0
}
