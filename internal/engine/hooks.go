package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/hooks"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// ReadHooks reads hooks without a session; environ is the environment of the
// process.
func ReadHooks(ctx context.Context, set *settings.Settings, x *values.Expander, environ []string) (*hooks.Set, error) {
	out := &hooks.Set{Dir: set.ProjectRoot}
	places := set.RawEach("hooks")
	envErrs := make([]error, len(places))
	for place, raw := range places {
		found, err := hooks.Parse(raw.JSON())
		if err != nil {
			return nil, &InputError{Err: fmt.Errorf("%s: %w", raw.Origin, err), Hint: "such as hooks: {beforeCall: [{command: [./check.sh], tools: [write_file]}]}"}
		}
		var env []string
		if len(found) > 0 {
			env, envErrs[place] = values.ToolEnviron(ctx, set.For(raw.Origin.Scope), x, environ)
		}
		position := map[hooks.Event]int{}
		for i := range found {
			h := &found[i]
			h.Place, h.Origin = place, raw.At(fmt.Sprintf("/%s/%d", h.Event, position[h.Event])).String()
			h.Env = append(slices.Clone(env), "TOOLREG_PROJECT_ROOT="+set.ProjectRoot)
			position[h.Event]++
		}
		out.Hooks = append(out.Hooks, found...)
	}
	if len(out.Hooks) == 0 {
		return nil, nil
	}
	out.Expand = func(h *hooks.Hook) ([]string, error) {
		if err := envErrs[h.Place]; err != nil {
			return nil, err
		}
		return hookCommand(x, h, places[h.Place].Origin)
	}
	return out, nil
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
