package servecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/transport"
	"github.com/toolreg/toolreg/internal/settings"
)

type options struct {
	cli.Selection
	preset      string
	http        string
	tokenFile   string
	noAuth      bool
	drain       time.Duration
	printConfig string
	expose      string   // all, search
	always      []string // with search: globs of tools that are offered too
	logLevel    string   // one of levels
	logFormat   string   // text, json
	metrics     string   // address, or metricsOn
	console     bool
	profile     string
	// namesBuiltins is namesBuiltIn of the settings in effect.
	namesBuiltins atomic.Bool
	oauth         *auth.OAuth                 // of serve.oauth; nil means there is none
	tls           *transport.Certificates     // of serve.tls; nil means there are none
	tokenList     atomic.Pointer[auth.Tokens] // nil until it is read, and without one
}

var levels = []string{"debug", "info", "warn", "error"}

// The values of --expose.
const (
	exposeAll    = "all"
	exposeSearch = "search"
	// exposeScripts offers run_script and what --always names.
	exposeScripts = "scripts"
)

func (o *options) checkFlags() error {
	switch {
	case !o.overHTTP() && (o.tokenFile != "" || o.noAuth):
		return cli.Usage("--token-file and --no-auth need --http",
			"toolreg serve --http 127.0.0.1:8080 --token-file FILE")
	case o.profile != "" && o.overHTTP():
		return cli.Usage("--profile is for the client on stdin",
			"over HTTP a token names its profile (profile=NAME in the token file), or the address does: /mcp/"+o.profile)
	case o.metrics == metricsOn && !o.overHTTP():
		return cli.Usage("--metrics on needs --http",
			"toolreg serve --metrics 127.0.0.1:9464 serves them on an address of their own")
	case o.console && !o.overHTTP():
		return cli.Usage("--console needs --http", "toolreg serve --http 127.0.0.1:8080 --console")
	case o.console && o.noAuth:
		return cli.Usage("--console and --no-auth cannot be used together: the console needs a token",
			"leave out --no-auth: a token is generated")
	case o.tokenFile != "" && o.noAuth:
		return cli.Usage("--token-file and --no-auth cannot be used together", "")
	case o.expose != exposeAll && o.expose != exposeSearch && o.expose != exposeScripts:
		return &cli.UsageError{Err: fmt.Errorf("--expose %q: must be all, search or scripts", o.expose)}
	case len(o.always) > 0 && o.expose == exposeAll:
		return cli.Usage("--always needs --expose search or scripts", "")
	case !slices.Contains(levels, o.logLevel):
		return &cli.UsageError{
			Err: fmt.Errorf("--log-level %q: must be one of %s", o.logLevel, strings.Join(levels, ", ")),
		}
	case o.logFormat != "text" && o.logFormat != "json":
		return &cli.UsageError{Err: fmt.Errorf("--log-format %q: must be text or json", o.logFormat)}
	case o.drain < 0:
		return &cli.UsageError{Err: fmt.Errorf("--drain %s: must be 0 or more", o.drain)}
	}
	return nil
}

// overHTTP reports whether clients connect over HTTP instead of stdin.
func (o *options) overHTTP() bool { return o.http != "" || os.Getenv("LISTEN_FDS") != "" }

// namesBuiltIn reports whether built-in tools are offered. Over HTTP, flags or settings must name
// them, because they act on this machine and not on the client's.
func (o *options) namesBuiltIn(set *settings.Settings) bool {
	return !o.overHTTP() || o.preset != "" || len(o.Source) > 0 || set.CoreTools.Set || set.OnlyTools.Set
}

// offers reports whether a tool is offered to clients without a profile.
func (o *options) offers(t *registry.Tool) bool {
	return o.Matches(t) && (t.Source != registry.SourceBuiltin ||
		o.namesBuiltins.Load() || isNamed(entries(o.always, "--always"), &t.Definition))
}

func isNamed(globs []registry.Entry, d *registry.Definition) bool {
	_, ok := registry.MatchAny(globs, d.Spellings()...)
	return ok
}

// reachable returns a function that reports which tools other tools, such as those of --expose
// search, may reach; nil if they may reach all. A tool that is offered itself needs no such limit.
func (o *options) reachable() func(*registry.Tool) bool {
	if !o.overHTTP() && (o.expose == exposeAll || !o.Narrows()) {
		return nil
	}
	return o.offers
}

// selected returns those of the matching tools that are offered.
func (o *options) selected(ctx context.Context, s *engine.Session, expose string, named []registry.Entry,
	matches func(*registry.Tool) bool) (*registry.Registry, []engine.Found, error) {
	reg, err := o.Load(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	always := func(d *registry.Definition) bool { return isNamed(named, d) }
	var found []engine.Found
	switch expose {
	case exposeSearch:
		found, err = s.Offers.Reaching(ctx, reg, always)
	default:
		tools, _, splitErr := s.Offers.Split(ctx, reg, reg.Tools())
		tools = slices.DeleteFunc(tools, func(t *registry.Tool) bool {
			return !matches(t) || expose == exposeScripts && !always(&t.Definition)
		})
		found, err = engine.FoundIn(reg, tools), splitErr
		if err == nil && caller.Token(ctx) == "" { // a client's own servers may need its login first
			err = o.StrictFailure(reg)
		}
	}
	if err != nil || expose != exposeScripts && !s.Settings.Script.Declared() {
		return reg, found, err
	}
	own, ok, err := s.Scripts.Declare(ctx, reg, "mcp", matches)
	if ok {
		found = append(found, own)
	}
	return reg, found, err
}

// entries returns globs of tools; setting is where they are from.
func entries(globs []string, setting string) []registry.Entry {
	out := make([]registry.Entry, len(globs))
	for i, pattern := range globs {
		out[i] = registry.Entry{Value: registry.NameIn(pattern), Setting: setting}
	}
	return out
}

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
