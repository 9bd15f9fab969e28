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
	*run
	audit   *callRecorder
	runs    toolRuns
	answers exec.Answers // of a recording; nil without one

	mu        sync.Mutex
	executors map[*registry.Registry]*exec.Executor
}

func newGate(r *run, audit *callRecorder) *gate {
	return &gate{run: r, audit: audit, runs: toolRuns{r}, executors: map[*registry.Registry]*exec.Executor{}}
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
	p, err := g.policy(reg)
	if err != nil {
		return nil, err
	}
	x := &exec.Executor{Validate: reg.Validate, Decider: scoped{renewed{p, g.run, reg}}, Approvals: p.Approvals, Confine: g.confiner.Call, Warn: g.deps.Warn, Recorded: g.answers}
	if g.set.Globals.TimeoutSet {
		x.Timeout = g.set.Globals.Timeout
		if x.Timeout == 0 {
			x.Timeout = -1 // 0 on the command line is "no limit"
		}
	}
	if g.deps.Asker != nil {
		x.Confirmer = sync.OnceValue(g.deps.Asker.Confirmer)
	}
	if g.deps.Describe != nil {
		x.Unattended = &unattended{run: g.run, questions: &policy.Questions{Approvals: p.Approvals}}
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
	set, err := g.hooks(ctx)
	if err != nil {
		return err
	}
	if set != nil {
		x.Hooks = set
	}
	x.Observe = g.audit.Call
	x.Limits = g.runs.TimeLimit
	if len(g.set.CallLimits) > 0 {
		x.Quota = g.countCall
	}
	x.Wrap = g.runs.Around()
	return nil
}
