package session

import (
	"context"
	"errors"

	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// composites reads the setting composites; nil where there are none. The error
// is a *settings.Error.
func (s *Session) composites(ctx context.Context) (*discover.Composites, error) {
	named := s.set.RawNamed("composites")
	if len(named) == 0 {
		return nil, nil
	}
	return discover.ParseComposites(ctx, named, discover.CompositeOptions{Call: s.callStep, Context: s.context()})
}

// checkComposites looks for steps that name no tool, once all sources are
// there. Where all of them answered that is a mistake in the settings; else, or
// where a setting hides the tool, only a diagnostic.
func (s *Session) checkComposites(reg *registry.Registry) error {
	if s.sources.composites == nil || s.opts.Preset != "" { // a preset leaves tools out
		return nil
	}
	missing := s.sources.composites.Unresolved(func(name string) error { return s.resolveStep(reg, name) })
	if len(missing) == 0 {
		return nil
	}
	for _, r := range reg.Reports() {
		if r.State != registry.StateFailed {
			continue
		}
		for _, p := range missing {
			s.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "composite_unresolved", Source: registry.SourceComposite,
				Message: p.String(), Hint: r.Name + " failed and may be where the tool is"})
		}
		return nil
	}
	return &settings.Error{Problems: missing}
}

// resolveStep returns an error where no tool has the name of a step. One that a
// setting hides is noticed.
func (s *Session) resolveStep(reg *registry.Registry, name string) error {
	_, err := reg.Lookup(name)
	missing, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok {
		return err
	}
	if missing.Hidden == nil {
		missing.Hidden = s.sources.hidden(reg, name)
	}
	if missing.Hidden == nil {
		return err
	}
	s.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "composite_step_hidden", Source: registry.SourceComposite, Message: err.Error()})
	return nil
}
