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
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/store"
	"github.com/toolreg/toolreg/internal/text"
)

// gate creates the executors that run calls.
type gate struct {
	programs   *programs.Set
	policies   *policies
	audit      *record.Calls
	runs       *toolRuns
	limits     callLimits
	asker      Asker        // nil if nobody can be asked
	unattended *unattended  // without its questions; nil if questions are not kept
	tape       *record.Tape // nil if the run is neither recorded nor replayed

	mu        sync.Mutex
	executors map[*registry.Registry]*exec.Executor
}

// executor returns the executor of a registry, with the policy of the settings,
// the approvals of the state folder, and questions to the person.
func (g *gate) executor(ctx context.Context, reg *registry.Registry) (*exec.Executor, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.executors[reg]; x != nil {
		return x, nil
	}
	x, err := g.newExecutor(ctx, reg)
	if err == nil {
		if g.executors == nil {
			g.executors = map[*registry.Registry]*exec.Executor{}
		}
		g.executors[reg] = x
	}
	return x, err
}

// forget drops the executors of registries that have been replaced. Running calls
// keep theirs.
func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.executors)
}

func (g *gate) newExecutor(ctx context.Context, reg *registry.Registry) (*exec.Executor, error) {
	p, err := g.policies.policy(reg)
	if err != nil {
		return nil, err
	}
	x := &exec.Executor{
		Validate: reg.Validate, Decider: scoped{renewed{g.policies, p, reg, nil}, &g.programs.Settings.Serve.OAuth},
		Approvals: p.Approvals, Confine: g.programs.Confiner.Call, Warn: g.programs.Warn,
		Observe: g.audit.Call, Limits: g.runs.TimeLimit,
		// The middleware, outermost first.
		Wrap: []registry.Middleware{g.runs.LimitOutput, g.runs.cacheResults, g.runs.projectResults, g.runs.retryCalls},
	}
	if g.tape != nil {
		x.Recorded = g.tape
	}
	if globals := g.programs.Settings.Globals; globals.TimeoutSet {
		x.Timeout = globals.Timeout
		if x.Timeout == 0 {
			x.Timeout = -1 // 0 on the command line is "no limit"
		}
	}
	if g.asker != nil {
		x.Confirmer = sync.OnceValue(g.asker.Confirmer)
	}
	if g.unattended != nil {
		own := *g.unattended
		own.questions = &policy.Questions{Approvals: p.Approvals}
		x.Unattended = &own
	}
	if set := g.programs.Hooks(ctx); set != nil {
		x.Hooks = set
	}
	if len(g.limits.limits) > 0 {
		x.Quota = g.limits.count
	}
	return x, nil
}

// call makes a call of a tool that was found, with the answers of h if it was held.
func (g *gate) call(ctx context.Context, f Found, call registry.Call, h *exec.Held) (registry.Result, error) {
	ctx, ended := g.audit.Begin(ctx, f.Tool)
	defer ended()
	if f.reach != nil {
		return f.reach.executor().Execute(ctx, f.Tool, call)
	}
	x, err := g.executor(ctx, f.Registry)
	if err != nil {
		return registry.Result{}, err
	}
	return x.ExecuteHeld(ctx, f.Tool, call, h)
}

// scoped denies calls for which the caller's access token lacks a scope (serve.oauth.scopes).
type scoped struct {
	exec.Decider
	oauth *settings.ServeOAuth
}

// Decide implements exec.Decider.
func (s scoped) Decide(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
	if c := caller.From(ctx); c != nil && c.Scopes != nil {
		if lacking := s.oauth.Lacking(c.Scopes, t.Called()...); lacking != nil {
			return policy.Verdict{
				Decision: policy.Deny,
				Reason:   "the access token lacks the scope " + text.Quote(lacking.Scope),
				Origin:   lacking.Origin.String(),
			}
		}
	}
	return s.Decider.Decide(ctx, t, call)
}

// renewed decides by policies and, because a call may have waited for an answer meanwhile, by those of
// the sessions that have replaced theirs since. What any of them denies is denied.
type renewed struct {
	*policies
	first *policy.Policy // of policies
	reg   *registry.Registry
	offer *policy.Offer // that is to be used; nil for calls of the registry's tools
}

// Decide implements exec.Decider.
func (d renewed) Decide(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
	decide := func(p *policy.Policy) policy.Verdict {
		if d.offer != nil {
			return p.DecideOffer(ctx, *d.offer)
		}
		return p.Decide(ctx, t, call)
	}
	v := decide(d.first)
	for next := d.next.Load(); next != nil && v.Decision != policy.Deny; next = next.next.Load() {
		p, err := next.policy(d.reg)
		if err != nil {
			return policy.Verdict{Decision: policy.Deny, Reason: err.Error(), Origin: "the changed settings"}
		}
		v = decide(p)
	}
	return v
}

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
	shared *store.Store // what several processes count together; nil if local counts
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
		if (l.Client == "" || text.MatchNameFold(l.Client, name)) &&
			(l.Group == "" || slices.ContainsFunc(caller.Groups(ctx), ofGroup)) &&
			(l.Tool == "" || slices.ContainsFunc(t.Called(), matches)) {
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
			return &exec.LimitedError{
				Tool: tool, Calls: l.Calls, Per: l.Per,
				Again: max(s.end.Sub(now).Round(time.Second), time.Second), Origin: l.Origin.String(),
			}
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

// takeShared counts a call of a client in the store, see [callLimits.count]. If the store is
// away, the call is denied.
func takeShared(ctx context.Context, s *store.Store, tool, name string, limits []settings.CallLimit) error {
	var spans []store.Span
	var of []settings.CallLimit // each span's
	for _, l := range limits {
		span := store.Span{ID: strings.Join([]string{name, l.Client, l.Group, l.Tool, strconv.Itoa(l.Rank)}, "\x00"),
			Most: l.Calls, Per: l.Per}
		switch i := slices.IndexFunc(spans, func(other store.Span) bool { return other.ID == span.ID }); {
		case i < 0:
			spans, of = append(spans, span), append(of, l)
		case span.Most < spans[i].Most: // two scopes may have the same limit
			spans[i], of[i] = span, l
		}
	}
	if len(spans) == 0 {
		return nil
	}
	full, left, err := s.Count(ctx, spans)
	switch _, away := errors.AsType[*store.AwayError](err); {
	case away:
		return &exec.Denied{Tool: tool, Reason: "the number of calls is limited, and " + err.Error(),
			Origin: of[0].Origin.String(), Later: true}
	case err != nil:
		return err
	case full < 0:
		return nil
	}
	return &exec.LimitedError{
		Tool: tool, Calls: of[full].Calls, Per: of[full].Per,
		Again: max(left.Round(time.Second), time.Second), Origin: of[full].Origin.String(),
	}
}
