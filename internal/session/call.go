package session

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
)

// Call makes one call of a tool that was found, through the one gate with
// everything around it. Its errors are those of [exec.Executor.Execute], and an
// *InputError about rules that cannot be read. Calls may run at once.
func (s *Session) Call(ctx context.Context, f Found, call registry.Call) (registry.Result, error) {
	x, err := s.executor(ctx, f.Registry)
	if err != nil {
		return registry.Result{}, err
	}
	return x.Execute(ctx, f.Tool, call)
}

// CallJSON makes a call with params as a model or a script sent them; name is
// what it calls the tool.
func (s *Session) CallJSON(ctx context.Context, f Found, name string, raw []byte) (registry.Result, error) {
	params, err := registry.DecodeParams(f.Tool.Name, raw)
	if err != nil {
		return registry.Result{}, s.RefusedParams(ctx, f.Tool, err)
	}
	return s.Call(ctx, f, registry.Call{Tool: name, Params: Restored(f.Tool, params)})
}

// Restored undoes in params what declarations did to the schema, so that a
// model's params fit the tool's own.
func Restored(t *registry.Tool, params json.RawMessage) json.RawMessage {
	if bytes.Contains(t.InputSchema, []byte(`"enum"`)) || bytes.Contains(t.InputSchema, []byte(`"const"`)) {
		params = declare.RestoreEnums(t.InputSchema, params)
	}
	if bytes.Contains(params, []byte("null")) {
		params = declare.RestoreOptional(t.InputSchema, params)
	}
	return params
}

// executor returns the one executor of a registry: policy from the settings,
// approvals from the state folder, questions to the person.
func (s *Session) executor(ctx context.Context, reg *registry.Registry) (*exec.Executor, error) {
	s.running.Lock()
	defer s.running.Unlock()
	if x := s.executors[reg]; x != nil {
		return x, nil
	}
	x, err := s.newExecutor(ctx, reg)
	if err == nil {
		s.executors[reg] = x
	}
	return x, err
}

func (s *Session) newExecutor(ctx context.Context, reg *registry.Registry) (*exec.Executor, error) {
	p, err := s.Policy(reg)
	if err != nil {
		return nil, err
	}
	x := &exec.Executor{Validate: reg.Validate, Decider: p, Approvals: p.Approvals, Warn: s.deps.Warn}
	if s.set.Globals.TimeoutSet {
		x.Timeout = s.set.Globals.Timeout
		if x.Timeout == 0 {
			x.Timeout = -1 // 0 on the command line is "no limit"
		}
	}
	if s.deps.Asker != nil {
		x.Confirmer = sync.OnceValue(s.deps.Asker.Confirmer)
	}
	return x, s.surround(ctx, x)
}

// surround puts around every call of an executor what the settings say, from
// the outside in: hooks, audit, limit on output, cache, retries, time limit
// (spec section 8.6).
func (s *Session) surround(ctx context.Context, x *exec.Executor) error {
	set, err := s.Hooks(ctx)
	if err != nil {
		return err
	}
	if set != nil {
		x.Hooks = set
	}
	if s.set.Audit.Enabled {
		x.Observe = s.recordCall
	}
	x.Limits = func(t *registry.Tool) time.Duration {
		d := optionsOf(s.set, t).timeout
		if d != nil && *d == 0 {
			return -1 // "no limit"
		}
		return valueOf(d)
	}
	x.Wrap = []registry.Middleware{s.limitOutput, s.cacheResults, s.retryCalls}
	return nil
}

// callStep makes the call of a composite's step: it finds the tool, starting
// only the server that it needs, and puts it through the same gate as every
// call.
func (s *Session) callStep(ctx context.Context, name string, params json.RawMessage) (registry.Result, error) {
	f, err := s.Find(ctx, name, Query{Call: true})
	if err != nil {
		return registry.Result{}, err
	}
	return s.Call(ctx, f, registry.Call{Tool: name, Params: params})
}
