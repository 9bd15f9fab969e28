package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// Call calls a tool that [Session.Find] returned, subject to policy, hooks and the rest
// of the middleware. It returns the errors of [exec.Executor.Execute], or an *InputError
// if the rules are invalid. It is safe for concurrent use.
func (s *Session) Call(ctx context.Context, f Found, call registry.Call) (registry.Result, error) {
	if f.reach != nil {
		return f.reach.executor().Execute(ctx, f.Tool, call)
	}
	x, err := s.gate.executor(ctx, f.Registry)
	if err != nil {
		return registry.Result{}, err
	}
	return x.Execute(ctx, f.Tool, call)
}

// CallJSON is like [Session.Call] with params as a model or a script sent them. name is
// the name by which the caller referred to the tool.
func (s *Session) CallJSON(ctx context.Context, f Found, name string, raw []byte) (registry.Result, error) {
	params, err := registry.DecodeParams(f.Tool.Name, raw)
	if err != nil {
		return registry.Result{}, s.RefusedParams(ctx, f.Tool, err)
	}
	return s.Call(ctx, f, registry.Call{Tool: name, Params: Restored(f.Tool, params)})
}

// Restored converts params that match a declared schema, which providers may change, to
// params that match the tool's own schema.
func Restored(t *registry.Tool, params json.RawMessage) json.RawMessage {
	if bytes.Contains(t.InputSchema, []byte(`"enum"`)) || bytes.Contains(t.InputSchema, []byte(`"const"`)) {
		params = provider.RestoreEnums(t.InputSchema, params)
	}
	if bytes.Contains(params, []byte("null")) {
		params = provider.RestoreOptional(t.InputSchema, params)
	}
	return params
}

// callStep calls the tool of a composite's step like any other tool. It starts only the
// server that the step needs.
func (s *Session) callStep(ctx context.Context, name string, params json.RawMessage) (registry.Result, error) {
	f, err := s.Find(ctx, name, Query{Call: true, Step: true})
	if err != nil {
		return registry.Result{}, err
	}
	return s.Call(ctx, f, registry.Call{Tool: name, Params: params})
}

// RefusedParams logs a call that was refused without a policy decision because its params
// could not be read. It returns err.
func (s *Session) RefusedParams(ctx context.Context, t *registry.Tool, err error) error {
	return s.audit.Refused(ctx, t, err)
}

// Offered splits tools into those to declare and those whose every call is denied. The
// latter are hidden, but a call of one is still answered with the denial. It returns an
// *InputError if the rules are invalid.
func (s *Session) Offered(ctx context.Context, reg *registry.Registry, tools []*registry.Tool) ([]*registry.Tool, []registry.Hidden, error) {
	p, err := s.Policy(reg)
	if err != nil {
		return nil, nil, err
	}
	var hidden []registry.Hidden
	offered := slices.DeleteFunc(slices.Clone(tools), func(t *registry.Tool) bool {
		v, denied := p.DeniesAll(ctx, t)
		if denied {
			hidden = append(hidden, registry.Hidden{Name: t.Name, Version: t.Version, Source: t.Source, Reason: "every call is denied: " + v.Reason, Setting: v.Origin})
		}
		return denied
	})
	return offered, hidden, nil
}

// Policy returns the policy for the calls of a registry's tools. The error is
// an *InputError.
func (r *run) Policy(reg *registry.Registry) (*policy.Policy, error) {
	p, err := r.rules.Policy(policyOptions{Folders: r.deps.Folders, Shell: r.shell(), Means: r.confiner.Means, Warn: r.deps.Warn}, reg)
	if err != nil {
		return nil, &InputError{Err: err}
	}
	return p, nil
}

// shell returns the shell whose grammar is used to read commands, which is the one that
// runs them.
func (r *run) shell() string { return builtin.Shell(r.env) }
