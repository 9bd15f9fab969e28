package engine

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/engine/listing"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

// Connections reaches the servers of the settings: it has their options, logins and cached
// records. It starts none.
type Connections struct {
	programs  *programs
	logins    *logins
	listings  *listing.Store
	kept      *keptServers
	questions *questions
	gate      *gate                             // for questions to a model
	all       mcpclient.Options                 // what the options of all servers have in common
	logs      func() func(mcpclient.LogMessage) // see [Deps.ServerLog]
	files     *builtin.Files                    // for calls of APIs
	links     *links
	apis      []*openapi.Source // that were created
	earlier   []*openapi.Source // of the session that this one is to replace
}

// workspaceOf returns the workspace of the settings; "" means that there is none.
func workspaceOf(set *settings.Settings) string {
	if set.NoWorkspace {
		return ""
	}
	return set.Workspace
}

// Options returns the options for connecting to a server of the settings.
func (c *Connections) Options(ctx context.Context, server settings.Server) mcpclient.Options {
	o, p, logins := c.all, c.programs, c.Logins()
	o.Server, o.Memory = server, c.listings.OfServer(server)
	o.Auth = func(expanded settings.Server) wire.Authorizer { return c.OAuthClient(expanded, logins) }
	o.Confine = p.confiner.Programs(confine.Server(server.Name))
	o.Elicit, o.Refused = c.questions.elicit, c.questions.declined
	o.Exchange = c.gate.tape.Exchange(server.Name)
	o.Keep = c.keep(server)
	if p.set.StartsOutside(server) {
		o.Folder = p.folders.Neutral
	} else {
		o.Extra = []string{p.bytecode()}
	}
	if c.logs != nil {
		o.OnLog = c.logs()
	}
	if other, ok := c.questions.asker.(Sampler); ok {
		o.Sample = other.Sample
	} else if p.set.Sampling.Command.IsSet() {
		o.Sample = (&samplingCommand{gate: c.gate, questions: c.questions, server: server}).Answer
	}
	return o
}

// keep returns how a server is kept between runs; nil if it is not.
func (c *Connections) keep(server settings.Server) *mcpclient.Keep {
	d := c.kept.keepFor(server)
	if d <= 0 {
		return nil
	}
	return &mcpclient.Keep{
		For: d, Use: c.kept.use, Lists: c.all.ListOnly || c.all.Guard, Renew: c.kept.renew,
		Consent: c.programs.set.Globals.TrustProject && server.Origin.Scope == settings.ScopeProject,
		Origin:  func() keep.Origin { return c.kept.originOf(server) }, Folder: c.kept.sockets, Command: c.kept.command,
		Plan: func(_ context.Context, spec *process.Spec) (json.RawMessage, error) {
			plan, err := c.programs.confiner.Plan(confine.Server(server.Name), spec)
			if plan == nil {
				return nil, err
			}
			return json.Marshal(plan)
		},
	}
}

// api creates the source of an API of the settings.
func (c *Connections) api(api settings.API) *openapi.Source {
	set, p := c.programs.set, c.programs
	logins := c.Logins()
	o := openapi.Options{
		API: api, Expand: p.expander.API, ProjectRoot: set.ProjectRoot, Version: c.all.Version,
		Limits:     openapi.Limits{Document: set.Limits.Document, Result: set.Limits.Result, Schema: set.Limits.Schema, Tools: set.Limits.Tools},
		AllowHosts: set.FetchAllow.Values(), Proxy: proxyOf(p.environ),
		Memory: c.listings.OfAPI(api),
		Auth:   func(expanded settings.API) openapi.Authorizer { return c.apiClient(expanded, logins) },
		Warn:   p.reports.add, Logger: p.reports.log,
	}
	if allowed, isSet := set.Permissions["filesystem"]; allowed || !isSet {
		o.Paths = c.files.Paths
		o.Files = func(call registry.Call, pointer, name string) (string, []byte, error) {
			return c.files.Read(call, pointer, name, set.Limits.Document)
		}
	}
	if api.Origin.Scope == settings.ScopeProject && set.Project != nil {
		o.Granted = c.granted
	}
	for _, earlier := range c.earlier {
		o.Unasked = o.Unasked || earlier.Info().State == openapi.Ready && sameAPI(earlier.Settings(), api)
	}
	source := openapi.New(o)
	c.apis = append(c.apis, source)
	return source
}

// sameAPI reports whether two entries say the same, wherever they are.
func sameAPI(a, b settings.API) bool {
	for _, s := range []*settings.API{&a, &b} {
		s.Origin.Line, s.Origin.Col, s.TrustOrigin = 0, 0, settings.Origin{}
		s.Include, s.Exclude = settings.List{}, settings.List{}
		s.Headers = withoutPlaces(s.Headers)
	}
	return reflect.DeepEqual(a, b)
}

// granted returns an error if a grant for the project does not cover a file of a document
// with this content.
func (c *Connections) granted(path, sum string) error {
	path = trust.Real(path)
	for _, f := range c.programs.set.Project.Covered {
		switch {
		case f.Path != path || f.Sum == "":
		case f.Sum == sum:
			return nil
		default:
			return errors.New("it has just changed; run the command again")
		}
	}
	return errors.New("trust in this project does not cover it; write the reference as $ref: NAME")
}

// EndKept ends the kept processes of a server, or the kept session with it, and returns how
// many there were.
func (c *Connections) EndKept(ctx context.Context, server *mcpclient.Source) (stopped int, err error) {
	if server.Settings().Command != "" {
		return c.StopKept(ctx, server.Settings())
	}
	was, err := server.EndKept(ctx)
	if was {
		stopped = 1
	}
	return stopped, err
}

// StopKept ends the processes that keep a server of the settings, whatever its entry said
// when they were started, and returns their number.
func (c *Connections) StopKept(ctx context.Context, server settings.Server) (stopped int, err error) {
	return c.kept.stop(ctx, server)
}

// replayed returns the servers of a recording, which answer requests about prompts and resources.
func (c *Connections) replayed(ctx context.Context, sources []registry.Source) (out []*mcpclient.Source) {
	for _, server := range c.programs.set.Servers {
		o := c.Options(ctx, server)
		i := slices.IndexFunc(sources, func(s registry.Source) bool { return s.Name() == registry.MCPPrefix+server.Name })
		o.Recorded = sources[i]
		out = append(out, mcpclient.New(o))
	}
	return out
}

// CachedOffers returns the prompts or the resources of a server that an earlier run
// cached; kind is [mcpclient.OfferPrompts] or [mcpclient.OfferResources]. It starts
// nothing.
func (c *Connections) CachedOffers(ctx context.Context, server, kind string) []mcpclient.Offer {
	entry := c.programs.set.Server(server)
	if entry == nil || entry.IsOff() {
		return nil
	}
	cached, _ := c.listings.OfServer(*entry).Load(ctx) // an error means that the server must not be queried
	return cached.Offers[kind]
}

// Forget removes the record of a server or API from the cache, because another login may see
// other tools, and the sessions with it that outlast a run, which belong to the old login.
func (c *Connections) Forget(ctx context.Context, name string) {
	var err error
	if api := c.programs.set.API(name); api != nil {
		err = c.listings.OfAPI(*api).Forget(ctx)
	}
	if server := c.programs.set.Server(name); server != nil {
		c.kept.forgetSessions(ctx, *server)
		err = c.listings.OfServer(*server).Forget(ctx)
	}
	if err != nil {
		c.programs.reports.log.Debug("dropping the cached listing failed", "server", name, "err", err)
	}
}
