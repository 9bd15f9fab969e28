package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/quota"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider/restore"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// gate makes every call. It configures the executors, one for each kind of call; see
// [exec.Executor]. What a kind of call skips is decided here and nowhere else.
type gate struct {
	programs *programs.Set
	policies *policies
	runs     *toolRuns
	limits   *quota.Limits
	asker    Asker                           // nil if nobody can be asked
	describe func(exec.Question) exec.Prompt // see [Deps.Describe]; nil if questions are not kept
	audit    *record.Calls
	tape     *record.Tape // nil if the run is neither recorded nor replayed
	reports  *reports

	mu        sync.Mutex
	executors map[*registry.Registry]*exec.Executor // never nil
}

// call makes a call of a tool that was found, with the answers of h if it was held. Its params come
// from a model, a script or the step of a composite, and pass through [Restored].
func (g *gate) call(ctx context.Context, f Found, call registry.Call, h *exec.Held) (registry.Result, error) {
	ctx, ended := g.audit.Begin(ctx, f.Tool)
	defer ended()
	x, err := g.executor(ctx, f)
	if err != nil {
		return registry.Result{}, err
	}
	call.Params = Restored(f.Tool, call.Params)
	return x.ExecuteHeld(ctx, f.Tool, call, h)
}

// executor returns the executor for a tool that was found. Executors for a registry's tools are
// kept until [gate.forget], because their policies are costly to make. The error is a
// *settings.InputError.
func (g *gate) executor(ctx context.Context, f Found) (*exec.Executor, error) {
	if f.reach != nil {
		return g.describer(f.Registry), nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.executors[f.Registry]; x != nil {
		return x, nil
	}
	x, err := g.newExecutor(ctx, f.Registry)
	if err == nil {
		g.executors[f.Registry] = x
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

// newExecutor returns an executor that applies everything the settings say about calls. Steps whose
// field is nil are skipped.
func (g *gate) newExecutor(ctx context.Context, reg *registry.Registry) (*exec.Executor, error) {
	p, err := g.policies.policy(reg)
	if err != nil {
		return nil, err
	}
	x := &exec.Executor{
		Validate: reg.Validate,
		Decide: func(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
			if v, lacks := g.lacksScope(ctx, t); lacks {
				return v
			}
			return g.policies.decide(p, reg, func(p *policy.Policy) policy.Verdict { return p.Decide(ctx, t, call) })
		},
		Remember: p.Approvals.Remember,
		Quota:    g.limits.Count,
		// The middleware, outermost first.
		Wrap: []registry.Middleware{
			g.runs.LimitOutput, g.runs.cacheResults, g.runs.projectResults, g.runs.retryCalls,
		},
		Confine:   g.programs.Confiner.Call,
		TimeLimit: g.runs.TimeLimit,
		Observe:   g.audit.Call,
		Warn:      g.programs.Warn,
	}
	if set := g.programs.Hooks(ctx); set != nil {
		x.Hooks = set
	}
	if g.asker != nil {
		x.Confirmer = sync.OnceValue(g.asker.Confirmer)
	}
	if g.describe != nil {
		x.Unattended = &unattended{
			command:  newApprovalCommand(g.programs, g.reports, g.describe),
			policies: g.policies, reports: g.reports, describe: g.describe,
			workspace: g.programs.Settings.Workspace, replayed: g.tape.Replays(),
			questions: &policy.Questions{Approvals: p.Approvals},
		}
	}
	if g.tape != nil {
		x.Recorded = g.tape
	}
	return x, nil
}

// lacksScope denies a call for which the caller's access token lacks a scope (serve.oauth.scopes).
func (g *gate) lacksScope(ctx context.Context, t *registry.Tool) (denial policy.Verdict, lacks bool) {
	if c := caller.From(ctx); c != nil && c.Scopes != nil {
		if lacking := g.programs.Settings.Serve.OAuth.Lacking(c.Scopes, t.Called()...); lacking != nil {
			return policy.Verdict{Decision: policy.Deny, Origin: lacking.Origin.String(),
				Reason: "the access token lacks the scope " + text.Quote(lacking.Scope)}, true
		}
	}
	return policy.Verdict{}, false
}

// describer returns the executor for search_tools and describe_tools. It asks nobody, and applies
// neither rules nor hooks: those are about tools of the registry, and these two only show tools
// that are offered.
func (g *gate) describer(reg *registry.Registry) *exec.Executor {
	return &exec.Executor{
		Validate: reg.Validate,
		Decide: func(context.Context, *registry.Tool, registry.Call) policy.Verdict {
			return policy.Verdict{Decision: policy.Allow, Reason: "it only describes tools", Origin: "default"}
		},
		Wrap:    []registry.Middleware{g.runs.LimitOutput},
		Observe: g.audit.Call,
		Warn:    g.programs.Warn,
	}
}

// sampler returns an executor for the requests that sampling.command answers. Its approvals cover
// only sampling: allowing it permanently does not allow the tools of the server.
func (g *gate) sampler(ctx context.Context) (*exec.Executor, error) {
	x, err := g.newExecutor(ctx, registry.NewLoader(registry.Options{}).Load(ctx, nil, true))
	if err != nil {
		return nil, err
	}
	decide := x.Decide
	x.Decide = func(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
		v := decide(ctx, t, call)
		v.Scopes = slices.DeleteFunc(v.Scopes, func(s policy.Scope) bool { return s.Kind == policy.ScopeServer })
		return v
	}
	return x, nil
}

// requester returns an executor for requests of prompts and resources. It asks and records as the
// executor for tools does, but does not offer "always" and ignores settings about tools.
func (g *gate) requester(ctx context.Context,
	decide func(context.Context, *registry.Tool, registry.Call) policy.Verdict) (*exec.Executor, error) {
	x, err := g.executor(ctx, Found{})
	if err != nil {
		return nil, err
	}
	return &exec.Executor{
		Validate: func(context.Context, *registry.Tool, json.RawMessage) error { return nil }, Decide: decide,
		Confirmer: x.Confirmer, Unattended: x.Unattended, Recorded: x.Recorded, Observe: x.Observe, Warn: x.Warn,
	}, nil
}

// Restored converts params that match the declared schema, which providers may have changed, to
// params that match the tool's own schema.
func Restored(t *registry.Tool, params json.RawMessage) json.RawMessage {
	params = restore.Values(t.InputSchema, params)
	if bytes.Contains(params, []byte("null")) {
		params = restore.Optional(t.InputSchema, params)
	}
	return params
}
