package builtin

import (
	"context"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

// located returns a tool whose results have absolute paths as locations, so
// that readers need not know the workspace.
func located(t registry.Tool, w *workspace.Dir) registry.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		r, err := run(ctx, call)
		if len(r.Locations) == 0 {
			return r, err
		}
		if dir, pathErr := w.Path(); pathErr == nil {
			for i := range r.Locations {
				if l := &r.Locations[i]; !filepath.IsAbs(l.Path) {
					l.Path = filepath.Join(dir, filepath.FromSlash(l.Path))
				}
			}
		}
		return r, err
	}
	return t
}
