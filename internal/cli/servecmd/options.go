package servecmd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/auth"
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
		return cli.Usage("--console and --no-auth cannot be used together: whoever enters the console must show a token",
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

// namesBuiltIn reports whether built-in tools are offered: over HTTP they are those of this machine
// and not of the client's, so flags or settings must name them.
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

// reachable returns which tools other tools may reach, such as those of --expose search, or nil
// if they may reach all. A tool that is offered itself needs no such limit.
func (o *options) reachable() func(*registry.Tool) bool {
	if !o.overHTTP() && (o.expose == exposeAll || !o.Narrows()) {
		return nil
	}
	return o.offers
}

// selected returns the tools to offer of those that match.
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
