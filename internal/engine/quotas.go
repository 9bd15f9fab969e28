package engine

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

// callLimits are the limits for the calls of clients (serve.limits), and what counts the calls.
type callLimits struct {
	limits  []settings.CallLimit
	counter counter
}

// counter counts calls: those of this process (*quotas), or those of several together
// (*store.Store).
type counter interface {
	// Count adds one to each span. If one of them is full, it adds nothing and returns the index
	// of that one and how long it lasts; otherwise full is -1.
	Count(ctx context.Context, spans []store.Span) (full int, left time.Duration, err error)
}

// count counts a call of a client. It returns an *exec.LimitedError, and counts nothing, if one
// of the limits for the call is reached. The person at the command line has no limits. If a
// shared counter is away, the call is denied.
func (c *callLimits) count(ctx context.Context, t *registry.Tool) error {
	name := caller.Name(ctx)
	if name == "" {
		return nil
	}
	limits := slices.DeleteFunc(slices.Clone(c.limits), func(l settings.CallLimit) bool {
		matches := func(spelling string) bool { return text.MatchNameFold(l.Tool, spelling) }
		ofGroup := func(group string) bool { return text.MatchNameFold(l.Group, group) }
		return l.Client != "" && !text.MatchNameFold(l.Client, name) ||
			l.Group != "" && !slices.ContainsFunc(caller.Groups(ctx), ofGroup) ||
			l.Tool != "" && !slices.ContainsFunc(t.Called(), matches)
	})
	spans, of := spansOf(name, limits)
	if len(spans) == 0 {
		return nil
	}
	full, left, err := c.counter.Count(ctx, spans)
	if _, away := errors.AsType[*store.AwayError](err); away {
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

// spansOf returns what is counted for a client under limits, and the limit of each span. A span is not
// another one when the number of calls or the time of its limit is changed; if two scopes of the
// settings have the same limit, the lower number counts.
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

// quotas counts the calls of this process. The zero value has counted none. It is safe for concurrent
// use.
type quotas struct {
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
func (q *quotas) Count(_ context.Context, spans []store.Span) (full int, left time.Duration, err error) {
	full, left = q.count(spans, time.Now())
	return full, left, nil
}

func (q *quotas) count(spans []store.Span, now time.Time) (full int, left time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.swept) > time.Minute {
		maps.DeleteFunc(q.spans, func(_ string, c *counted) bool { return !now.Before(c.end) })
		q.swept = now
	}
	if q.spans == nil {
		q.spans = map[string]*counted{}
	}
	for i, span := range spans {
		c := q.spans[span.ID]
		if c == nil || !now.Before(c.end) {
			c = &counted{end: now.Add(span.Per)}
			q.spans[span.ID] = c
		}
		if c.calls >= span.Most {
			return i, c.end.Sub(now)
		}
	}
	for _, span := range spans {
		q.spans[span.ID].calls++
	}
	return -1, 0
}
