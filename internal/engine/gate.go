package engine

import (
	"context"
	"sync"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// gate creates the executors that run calls.
type gate struct {
	programs   *programs
	policies   *policies
	audit      *callRecorder
	runs       *toolRuns
	limits     callLimits
	asker      Asker       // nil: nobody can be asked
	unattended *unattended // without its questions; nil: questions are not kept
	tape       *tape       // nil: the run is neither recorded nor replayed

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
	x := &exec.Executor{Validate: reg.Validate, Decider: scoped{renewed{p, g.policies, reg}, &g.programs.set.Serve.OAuth}, Approvals: p.Approvals, Confine: g.programs.confiner.Call, Warn: g.programs.reports.add}
	if g.tape != nil {
		x.Recorded = g.tape
	}
	if globals := g.programs.set.Globals; globals.TimeoutSet {
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
	return x, g.surround(ctx, x)
}

// empty returns an executor for calls of tools that are not in a registry.
func (g *gate) empty(ctx context.Context) (*exec.Executor, error) {
	return g.newExecutor(ctx, registry.NewLoader(registry.Options{}).Load(ctx, nil, true))
}

// surround adds the middleware that the settings configure to an executor, outermost
// first: hooks, audit log, output limit, cache, result overrides, retries, time limit.
func (g *gate) surround(ctx context.Context, x *exec.Executor) error {
	set, err := g.programs.hooks(ctx)
	if err != nil {
		return err
	}
	if set != nil {
		x.Hooks = set
	}
	x.Observe = g.audit.Call
	x.Limits = g.runs.TimeLimit
	if len(g.limits.limits) > 0 {
		x.Quota = g.limits.count
	}
	x.Wrap = g.runs.Around()
	return nil
}

// call makes a call of a tool that was found, with the answers of h if it was held.
func (g *gate) call(ctx context.Context, f Found, call registry.Call, h *exec.Held) (registry.Result, error) {
	ctx = withScriptInfo(ctx)
	ctx, ended := g.audit.begin(ctx, f.Tool)
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
