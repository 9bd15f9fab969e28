package servecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/settings"
)

func usesOAuth(set settings.ServeOAuth) bool {
	return set.Issuer.Value+set.Audience.Value+set.KeysURL.Value != "" || len(set.Scopes) > 0
}

// useOAuth makes the server a resource server if the settings say so. On stdin there are no tokens.
func (o *options) useOAuth(e *cli.Env, set settings.ServeOAuth) error {
	if !o.overHTTP() || !usesOAuth(set) {
		return nil
	}
	at := cmp.Or(set.Issuer, set.Audience, set.KeysURL).Origin
	if len(set.Scopes) > 0 {
		at = cmp.Or(at, set.Scopes[0].Origin)
	}
	if o.tokenFile != "" || o.noAuth {
		return cli.Usage(fmt.Sprintf("%s: serve.oauth cannot be used with --token-file or --no-auth", at),
			"leave out the flag, or remove serve.oauth")
	}
	oauth, err := auth.NewOAuth(set, func(err error) {
		e.IO.Warn(registry.Warning("issuer_keys_unread", "", err.Error(),
			"toolreg tries again; until then, requests whose tokens are signed with keys that it does not know get 503"))
	})
	if err != nil {
		return &cli.UsageError{Err: fmt.Errorf("%s: %w", at, err)}
	}
	o.oauth = oauth
	return nil
}

func (o *options) changeOAuth(set settings.ServeOAuth) error {
	switch {
	case !o.overHTTP():
		return nil
	case usesOAuth(set) != (o.oauth != nil):
		return errors.New("serve.oauth was added or removed, which needs a restart of serve")
	case o.oauth != nil:
		return o.oauth.Change(set)
	}
	return nil
}

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
		return cli.Usage(fmt.Sprintf("--profile %q: there is no such profile in serve.profiles", o.profile),
			"toolreg settings show serve.profiles lists them")
	}
	return nil
}

// profiles returns the profiles of a session, narrowed by the flags.
func (o *options) profiles(from *engine.Session) offer.Profiles {
	var out offer.Profiles
	for _, p := range from.Settings.Profiles {
		only := filters(p)
		ofServers := engine.InPreset(p.Preset,
			&registry.Tool{Definition: registry.Definition{Source: registry.MCPPrefix}})
		always, builtIn := entries(p.Always, p.Origin.String()),
			p.Preset != "" || len(p.Source) > 0 || o.namesBuiltIn(from.Settings)
		matches := func(t *registry.Tool) bool {
			return o.Matches(t) && only.Matches(t) && engine.InPreset(p.Preset, t) &&
				(t.Source != registry.SourceBuiltin || builtIn || isNamed(always, &t.Definition))
		}
		out = append(out, offer.Profile{Name: p.Name, Groups: p.Groups, Tools: matches,
			Servers: func(name string) bool { return ofServers && o.MatchesServer(name) && only.MatchesServer(name) },
			Select: func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
				return o.selected(ctx, s, p.Expose, always, matches)
			}})
	}
	return out
}

// madeToken is the JSON output of serve token.
type madeToken struct {
	Name  string `json:"name"`
	Token string `json:"token"` // for the client
	Line  string `json:"line"`  // for the token file
}

func newToken(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "token NAME",
		Short: "Make a bearer token for a client of serve",
		Long: `Make a bearer token for a client of serve, and print it with the line for the file of
--token-file, which has only its hash. Nothing is stored: give the token to the
client, and add the line to the file.

Exit codes: 0, 2.`,
		Example: `  toolreg serve token alice
  toolreg serve token alice --jq .line >> ~/.config/toolreg/tokens`,
		Args: cli.ArgsBetween(1, 1, "one NAME"),
		RunE: func(_ *cobra.Command, argv []string) error {
			token, line, err := auth.MakeToken(argv[0])
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			if e.IO.JSON {
				return e.IO.PrintJSON(madeToken{argv[0], token, line})
			}
			e.IO.Note("toolreg: the token for the client, and its line for the token file:\n")
			_, err = e.IO.Out.Write([]byte(token + "\n" + line + "\n"))
			return err
		},
	}
}
