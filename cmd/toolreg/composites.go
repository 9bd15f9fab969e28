package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// composites reads the setting composites; nil where there are none. The error
// is a *settings.Error.
func (a *app) composites(ctx context.Context, s *settings.Settings) (*discover.Composites, error) {
	named := s.RawNamed("composites")
	if len(named) == 0 {
		return nil, nil
	}
	steps := &stepCaller{app: a}
	return discover.ParseComposites(ctx, named, discover.CompositeOptions{
		Call: steps.call, Context: a.context(s, settings.NewExpander(s.ProjectRoot, a.environ)),
	})
}

// stepCaller makes the calls of composites' steps.
type stepCaller struct {
	app *app
	mu  sync.Mutex // finding a tool may start servers and print
}

// call finds the tool of a step, starting only the server that it needs, and
// puts it through the same gate as every call.
func (c *stepCaller) call(ctx context.Context, name string, params json.RawMessage) (registry.Result, error) {
	c.mu.Lock()
	reg, tool, err := c.app.findToCall(ctx, name)
	c.mu.Unlock()
	if err != nil {
		return registry.Result{}, err
	}
	x, closeTTY, err := c.app.executor(ctx, reg)
	if err != nil {
		return registry.Result{}, err
	}
	defer closeTTY()
	return x.Execute(ctx, tool, registry.Call{Tool: name, Params: params})
}

// checkComposites looks for steps that name no tool, once all sources are
// there. Where all of them answered that is a mistake in the settings; else, or
// where a setting hides the tool, only a diagnostic.
func (a *app) checkComposites(reg *registry.Registry) error {
	if a.sources.composites == nil || a.preset != "" { // a preset leaves tools out
		return nil
	}
	missing := a.sources.composites.Unresolved(func(name string) error {
		_, err := reg.Lookup(name)
		if e, ok := errors.AsType[*registry.NotFoundError](err); ok && e.Hidden == nil {
			e.Hidden = a.hidden(reg, name)
		}
		if e, ok := errors.AsType[*registry.NotFoundError](err); ok && e.Hidden != nil {
			a.noticeEarly(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "composite_step_hidden", Source: registry.SourceComposite, Message: err.Error()})
			return nil
		}
		return err
	})
	if len(missing) == 0 {
		return nil
	}
	for _, r := range reg.Reports() {
		if r.State != registry.StateFailed {
			continue
		}
		for _, p := range missing {
			a.noticeEarly(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "composite_unresolved", Source: registry.SourceComposite,
				Message: p.String(), Hint: r.Name + " failed and may be where the tool is"})
		}
		return nil
	}
	return &settings.Error{Problems: missing}
}

// noticeEarly tells of something beyond the registry: in the result, where that
// holds the diagnostics, else on stderr.
func (a *app) noticeEarly(d registry.Diagnostic) {
	if a.reports {
		a.early = append(a.early, d)
		return
	}
	a.warn(d)
}
