package main

import (
	"context"
	"errors"
	"sync"

	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
)

// session serves many calls over one set of sources. It starts servers as the
// names of the calls need them, as app.find does for one call. find is for one
// goroutine; execute is safe for concurrent use.
type session struct {
	a      *app
	format string // of declarations, "" where names are those of the registry

	builtins   *registry.Registry // without plugins
	local, all *registry.Registry
	servers    map[string]*registry.Registry // local tools and those of one server
	declared   map[string]string             // names of all as declared
	executors  map[*registry.Registry]*exec.Executor
	closers    []func()
}

// newSession loads the settings; their mistakes are the error.
func newSession(ctx context.Context, a *app, format string) (*session, error) {
	if err := a.setup(ctx); err != nil {
		return nil, err
	}
	return &session{a: a, format: format, servers: map[string]*registry.Registry{}, executors: map[*registry.Registry]*exec.Executor{}}, nil
}

// close gives the terminal back. The sources live as long as the app.
func (s *session) close() {
	for _, c := range s.closers {
		c()
	}
}

// found is a tool with what runs it.
type found struct {
	tool *registry.Tool
	x    *exec.Executor
}

// find returns the tool of a name. The error is that of the tool, such as a
// *registry.NotFoundError, or the cause of ctx.
func (s *session) find(ctx context.Context, name string) (found, error) {
	reg, t, err := s.lookup(ctx, name)
	for s.a.renewFor(ctx, reg, t, err, true) {
		s.forget()
		reg, t, err = s.lookup(ctx, name)
	}
	if reg, t, err = s.a.found(ctx, reg, t, err); err != nil {
		return found{}, err
	}
	x, err := s.executor(ctx, reg)
	return found{t, x}, err
}

// forget drops the registries, whose sources have changed. Calls that run keep
// theirs.
func (s *session) forget() {
	s.builtins, s.local, s.all, s.declared = nil, nil, nil, nil
	clear(s.servers)
}

func (s *session) lookup(ctx context.Context, name string) (*registry.Registry, *registry.Tool, error) {
	sources := s.a.sources
	if few := sources.withoutPlugins(name); few != nil && s.local == nil && s.all == nil {
		if s.builtins == nil {
			s.builtins = s.a.load(ctx, few, true)
		}
		if t, err := s.builtins.Lookup(name); err == nil {
			return s.builtins, t, nil
		}
	}
	if s.all != nil || len(sources.servers) == 0 {
		return s.inAll(ctx, name)
	}
	if one := sources.serverOf(name); one != nil && len(sources.servers) > 1 {
		reg := s.servers[one.Name()]
		if reg == nil {
			reg = s.a.load(ctx, append(sources.local[:len(sources.local):len(sources.local)], one), true)
			s.servers[one.Name()] = reg
		}
		t, err := reg.Lookup(name)
		if failed := serverError(reg, one); err == nil || errors.Is(failed, registry.ErrSourceFailed) {
			return reg, t, errors.Join(failed, err)
		}
	}
	if s.local == nil {
		s.local = s.a.load(ctx, sources.local, true)
	}
	// A declared name may be a server's tool with the alias of a local one.
	if t, err := s.local.Lookup(name); err == nil && (s.format == "" || t.Name == name) {
		return s.local, t, nil
	}
	return s.inAll(ctx, name)
}

func (s *session) inAll(ctx context.Context, name string) (*registry.Registry, *registry.Tool, error) {
	if s.all == nil {
		s.all = s.a.load(ctx, s.a.sources.all(), false)
	}
	if s.format == "" { // a name as declared comes after all others
		if t, err := s.all.Lookup(name); err == nil {
			return s.all, t, nil
		}
	}
	if s.declared == nil {
		s.declared = declaredNames(s.format, definitions(s.all))
	}
	if original := s.declared[name]; original != "" {
		name = original
	}
	t, err := s.all.Lookup(name)
	if e, ok := errors.AsType[*registry.NotFoundError](err); ok && e.Hidden == nil {
		e.Hidden = s.a.hidden(s.all, e.Name)
	}
	return s.all, t, err
}

// declaredNames maps names as declared to those of the registry; without a
// format those of all formats, "" where they do not agree.
func declaredNames(format string, defs []registry.Definition) map[string]string {
	out := map[string]string{}
	for _, f := range declare.Formats() {
		if format != "" && f.Name != format {
			continue
		}
		names, err := declare.Names(f.Name, defs)
		if err != nil { // the name came from Formats
			continue
		}
		for declared, original := range names {
			if old, ok := out[declared]; ok && old != original {
				original = ""
			}
			out[declared] = original
		}
	}
	return out
}

// executor returns the one executor of a registry.
func (s *session) executor(ctx context.Context, reg *registry.Registry) (*exec.Executor, error) {
	if x := s.executors[reg]; x != nil {
		return x, nil
	}
	x, done, err := s.a.executor(ctx, reg)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, done)
	s.executors[reg] = x
	return x, nil
}

// execute makes one call with params as they came.
func (s *session) execute(ctx context.Context, f found, name string, raw []byte) (registry.Result, error) {
	params, err := registry.DecodeParams(f.tool.Name, raw)
	if err != nil {
		return registry.Result{}, s.a.refusedParams(ctx, f.tool, err)
	}
	return f.x.Execute(ctx, f.tool, registry.Call{Tool: name, Params: restored(f.tool, params)})
}

// inTurn asks one question at a time, whatever runs beside it.
type inTurn struct {
	mu *sync.Mutex
	exec.Confirmer
}

func (c *inTurn) Confirm(ctx context.Context, q exec.Question) (exec.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return exec.Answer{}, err
	}
	return c.Confirmer.Confirm(ctx, q)
}
