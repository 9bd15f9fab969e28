package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// hooks reads the setting hooks of all scopes. It returns nil if there are
// none. The error is an *InputError.
func (r *run) hooks(ctx context.Context) (*hooks.Set, error) {
	set, err := ReadHooks(ctx, r.set, r.expander, r.deps.Environ)
	if set != nil {
		set.Confine = r.confiner.Programs(confine.Hooks)
		set.Env = append(set.Env, r.bytecode())
	}
	return set, err
}

// ReadHooks reads hooks without a session; environ is the environment of the
// process.
func ReadHooks(ctx context.Context, set *settings.Settings, x *values.Expander, environ []string) (*hooks.Set, error) {
	var all []hooks.Hook
	var origins []settings.Origin
	for place, raw := range set.RawEach("hooks") {
		found, err := hooks.Parse(raw.JSON())
		if err != nil {
			return nil, &InputError{Err: fmt.Errorf("%s: %w", raw.Origin, err), Hint: "such as hooks: {beforeCall: [{command: [./check.sh], tools: [write_file]}]}"}
		}
		position := map[hooks.Event]int{}
		for i := range found {
			h := &found[i]
			h.Place, h.Origin = place, raw.At(fmt.Sprintf("/%s/%d", h.Event, position[h.Event])).String()
			position[h.Event]++
		}
		all, origins = append(all, found...), append(origins, raw.Origin)
	}
	if len(all) == 0 {
		return nil, nil
	}
	env, envErr := values.ToolEnviron(ctx, set, x, environ)
	return &hooks.Set{Hooks: all, Dir: set.ProjectRoot, Env: append(env, "TOOLREG_PROJECT_ROOT="+set.ProjectRoot),
		Expand: func(h *hooks.Hook) ([]string, error) {
			if envErr != nil {
				return nil, envErr
			}
			return hookCommand(x, h, origins[h.Place])
		}}, nil
}

// hookCommand expands a hook's command. A relative program path in the system's
// or user's settings is resolved from the folder of those settings: hooks run
// in the project, which must not be able to replace the program.
func hookCommand(x *values.Expander, h *hooks.Hook, origin settings.Origin) ([]string, error) {
	argv, err := x.Command(settings.Command{Argv: h.Command, Origin: origin})
	if err != nil {
		return nil, err
	}
	ours := origin.Scope == settings.ScopeUser || origin.Scope == settings.ScopeSystem
	if ours && strings.ContainsRune(filepath.ToSlash(argv[0]), '/') && !filepath.IsAbs(argv[0]) {
		argv[0] = filepath.Join(filepath.Dir(origin.Name), argv[0])
	}
	return argv, nil
}
