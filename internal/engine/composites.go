package engine

import (
	"context"
	"errors"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// resolveComposites quarantines composites with a step that names an unknown
// tool, once all sources are loaded, and returns the registry without them. If
// a failed source might have the tool, or a setting hides it, there is only a
// diagnostic.
func (f *finder) resolveComposites(ctx context.Context, reg *registry.Registry) *registry.Registry {
	if f.sources.composites == nil || f.preset != "" { // a preset omits tools
		return reg
	}
	failed := ""
	for _, r := range reg.Reports() {
		if r.State == registry.StateFailed && failed == "" {
			failed = r.Name
		}
	}
	excused := func(p document.Problem, err error) bool {
		code, hint := "composite_unresolved", failed+" failed and may be the source of the tool"
		if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && missing.Hidden != nil && missing.Hidden.Err == nil {
			code, hint = "composite_step_hidden", ""
		} else if failed == "" {
			return false
		}
		f.reports.notice(registry.Diagnostic{Severity: registry.SeverityWarning, Code: code, Source: registry.SourceComposite, Message: p.String(), Hint: hint})
		return true
	}
	// Quarantining a composite affects those that use it as a step.
	for f.sources.composites.Resolve(func(name string) error { return f.resolveStep(reg, name) }, excused) {
		f.loader.Renew(ctx, f.sources.composites)
		reg = f.reload(ctx)
	}
	return reg
}

// resolveStep returns an error if no tool has the name of a step. If a setting
// hides the tool, the error says so.
func (f *finder) resolveStep(reg *registry.Registry, name string) error {
	_, err := reg.LookupStep(name)
	if missing, ok := errors.AsType[*registry.NotFoundError](err); ok && missing.Hidden == nil {
		missing.Hidden = f.sources.hidden(reg, name)
	}
	return err
}
