package servecmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve"
	"github.com/toolreg/toolreg/internal/settings"
)

// filters returns the conditions of a profile.
func filters(p settings.Profile) *cli.Selection {
	return &cli.Selection{Filters: cli.Filters{Source: p.Source, Server: p.Server, Category: p.Category, Tag: p.Tag}}
}

// checkProfiles returns an error for profiles that name what does not exist, and for --profile.
func (o *options) checkProfiles(from *engine.Session) error {
	for _, p := range from.Settings.Profiles {
		err := filters(p).CheckSource(from)
		if err == nil {
			err = engine.CheckPreset(p.Preset)
		}
		if err != nil {
			return &cli.UsageError{Err: fmt.Errorf("%s: serve.profiles.%s: %w", p.Origin, p.Name, err)}
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(from.Settings.Profiles, func(p settings.Profile) bool { return p.Name == name })
	}
	if tokens := o.tokenList.Load(); tokens != nil {
		if err := tokens.CheckProfiles(has); err != nil {
			return err
		}
	}
	if o.profile != "" && !has(o.profile) {
		return &cli.UsageError{Err: fmt.Errorf("--profile %q: there is no such profile in serve.profiles", o.profile), Hint: "toolreg settings show serve.profiles lists them"}
	}
	return nil
}

// profiles returns the profiles of a session, narrowed by the flags.
func (o *options) profiles(from *engine.Session) []serve.Profile {
	var out []serve.Profile
	for _, p := range from.Settings.Profiles {
		only := filters(p)
		ofServers := engine.InPreset(p.Preset, &registry.Tool{Definition: registry.Definition{Source: registry.MCPPrefix}})
		always, builtIn := entries(p.Always, p.Origin.String()), p.Preset != "" || len(p.Source) > 0 || o.namesBuiltIn(from.Settings)
		matches := func(t *registry.Tool) bool {
			return o.Matches(t) && only.Matches(t) && engine.InPreset(p.Preset, t) && (t.Source != registry.SourceBuiltin || builtIn || isNamed(always, &t.Definition))
		}
		out = append(out, serve.Profile{Name: p.Name, Groups: p.Groups, Tools: matches,
			Servers: func(name string) bool { return ofServers && o.MatchesServer(name) && only.MatchesServer(name) },
			Select: func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
				return o.selected(ctx, s, p.Expose, always, matches)
			}})
	}
	return out
}
