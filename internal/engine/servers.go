package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/oauth"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// NoServerError reports that the settings have no server of this name. It
// matches [registry.ErrNotFound].
type NoServerError struct {
	Name  string
	Known []string // names of all servers
}

func (e *NoServerError) Error() string {
	message := fmt.Sprintf("no server named %q (%d in the settings)", e.Name, len(e.Known))
	if near := registry.Near(e.Name, e.Known); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return message
}

// Is reports whether target is [registry.ErrNotFound].
func (e *NoServerError) Is(target error) bool { return target == registry.ErrNotFound }

// Servers returns the servers whose names match one of the patterns, or all
// servers without patterns; those that are turned off are returned separately.
// A pattern that matches none is a *NoServerError. It starts no server.
func (s *Session) Servers(patterns ...string) (on []*mcpclient.Source, off []OffServer, err error) {
	if len(patterns) == 0 {
		return s.sources.servers, s.sources.off, nil
	}
	for _, pattern := range patterns {
		matched := false
		for _, server := range s.sources.servers {
			if text.MatchName(pattern, server.Info().Name) {
				matched = true
				s.cached.ForgetFailure(server.Name()) // a named server is started even if it failed recently
				if !slices.Contains(on, server) {
					on = append(on, server)
				}
			}
		}
		for _, server := range s.sources.off {
			if text.MatchName(pattern, server.Name) {
				matched = true
				if !slices.ContainsFunc(off, func(o OffServer) bool { return o.Name == server.Name }) {
					off = append(off, server)
				}
			}
		}
		if !matched {
			return nil, nil, &NoServerError{pattern, s.sources.serverNames()}
		}
	}
	return on, off, nil
}

// ServerOf returns the server that a name of the form server__tool refers to; nil if there
// is none.
func (s *Session) ServerOf(name string) *mcpclient.Source { return s.sources.serverOf(name) }

// Failed returns the servers of a registry that did not list their tools.
func (s *Session) Failed(reg *registry.Registry) []*mcpclient.Source {
	var out []*mcpclient.Source
	for _, server := range s.sources.servers {
		if sourceError(reg, server) != nil {
			out = append(out, server)
		}
	}
	return out
}

// Infos describes the servers of a registry, with servers that are turned off
// last. Their tools are the registered ones.
func Infos(reg *registry.Registry, on []*mcpclient.Source, off []OffServer) []mcpclient.Info {
	out := make([]mcpclient.Info, 0, len(on)+len(off))
	for _, server := range on {
		info := server.Info()
		info.Tools = len(reg.ByServer(info.Name))
		out = append(out, info)
	}
	for _, server := range off {
		out = append(out, server.info())
	}
	return out
}

// LoadServers connects to servers and lists their tools, which have qualified
// names. The error is the cause of ctx.
func (s *Session) LoadServers(ctx context.Context, servers []*mcpclient.Source) (*registry.Registry, error) {
	from := make([]registry.Source, len(servers))
	for i, server := range servers {
		from[i] = server
	}
	return s.finder.loadSources(ctx, from, true), context.Cause(ctx)
}

// Discovery runs all sources, or only the named servers, and returns a report
// on each; the tools are in the registry. The error is a *NoServerError or the
// cause of ctx.
func (s *Session) Discovery(ctx context.Context, servers ...string) (*registry.Registry, []SourceReport, error) {
	from := s.sources.all()
	on, off, err := s.Servers(servers...)
	if err != nil {
		return nil, nil, err
	}
	if len(servers) > 0 {
		from = nil
		for _, server := range on {
			from = append(from, server)
		}
	}
	reg := s.finder.loadSources(ctx, from, false)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if len(servers) == 0 {
		reg = s.resolveComposites(ctx, reg)
	}
	return reg, s.Reports(reg, off), nil
}

// SourceReport describes the outcome of one source.
type SourceReport struct {
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	State      registry.State `json:"state"`
	Tools      int            `json:"tools"`              // tools found, before filters and conflicts
	DurationMs int64          `json:"durationMs"`         // time that it took
	Error      string         `json:"error,omitempty"`    // why it failed
	CachedAt   *time.Time     `json:"cachedAt,omitempty"` // for a cached list: when the source was queried
	AgeMs      int64          `json:"ageMs,omitempty"`    // for a cached list: milliseconds since then
}

// Reports returns the outcome of each source of a registry, with servers that
// are turned off last.
func (s *Session) Reports(reg *registry.Registry, off []OffServer) []SourceReport {
	out := []SourceReport{}
	for _, r := range reg.Reports() {
		kind, _, _ := strings.Cut(r.Name, ":")
		report := SourceReport{Name: r.Name, Kind: kind, State: r.State, Tools: r.Tools, DurationMs: r.Duration.Milliseconds()}
		if r.Err != nil {
			report.Error = r.Err.Error()
		}
		if at, cached := s.cached.Records.Served(r.Name); cached {
			report.CachedAt, report.AgeMs = &at, s.cached.Records.Age(r.Name).Milliseconds()
		}
		out = append(out, report)
	}
	for _, server := range off {
		out = append(out, SourceReport{Name: registry.MCPPrefix + server.Name, Kind: "mcp", State: registry.StateSkipped, Error: server.Reason()})
	}
	return out
}

// RemoteServer returns a server of the settings that uses HTTP. The error is a
// *NoServerError, an *InputError or a *settings.Error.
func (s *Session) RemoteServer(name string) (settings.Server, error) {
	names := make([]string, 0, len(s.set.Servers))
	for _, server := range s.set.Servers {
		if server.Name == name && server.Err != nil {
			return settings.Server{}, server.Err
		}
		if server.Name == name && server.URL == "" && server.HTTPURL == "" {
			return settings.Server{}, &InputError{Err: fmt.Errorf("server %q is a program (%s); only servers with a url have logins", name, server.Origin)}
		}
		if server.Name == name {
			return server, nil
		}
		names = append(names, server.Name)
	}
	return settings.Server{}, &NoServerError{name, names}
}

// ServerOptions returns the options for connecting to a server of the settings.
func (s *Session) ServerOptions(ctx context.Context, server settings.Server) mcpclient.Options {
	logins := s.Logins()
	o := mcpclient.Options{
		Server:      server,
		Expand:      s.expander.Server,
		ProjectRoot: s.set.ProjectRoot, Workspace: s.set.Workspace, Environ: process.ChildEnviron(s.deps.Environ), Version: s.deps.Version,
		Logger: s.deps.Log, OnState: s.deps.Screen.ServerState, Counts: s.opts.Counts, ListOnly: s.opts.List, Remembered: s.cached.Remembered(server),
		Auth: func(expanded settings.Server) wire.Authorizer { return s.OAuthClient(expanded, logins) },
		Limits: mcpclient.Limits{
			Frame: s.set.Limits.Frame, Result: s.set.Limits.Result, Tools: s.set.Limits.Tools, Pages: s.set.Limits.Pages, Schema: s.set.Limits.Schema,
			Samples: s.set.Sampling.Requests,
		},
		Confine: s.confiner.Programs(confine.Server(server.Name)), Guard: s.opts.Guard,
		Callbacks: ask.Callbacks{Elicit: s.questions.elicit, Refused: s.questions.declined},
		Logging:   mcpclient.Logging{LogLevel: s.deps.LogLevel},
	}
	if s.set.StartsOutside(server) {
		o.Folder = s.deps.Folders.Neutral
	}
	if s.deps.ServerLog != nil {
		o.OnLog = s.deps.ServerLog()
	}
	if other, ok := s.deps.Asker.(Sampler); ok {
		o.Sample = other.Sample
	} else if s.set.Sampling.Command.IsSet() {
		o.Sample = newSamplingCommand(samplingOptions{Settings: s.set, Server: server, Expander: s.expander, Env: s.env, Confine: s.confiner.Programs(confine.Processor),
			Executor: s.gate.empty, Declined: s.questions.declined, Warn: s.questions.warnPaused}).Answer
	}
	if s.set.Globals.ConnectSet {
		o.ConnectTimeout = s.set.Globals.ConnectTimeout
	}
	return o
}

// Logins returns the store of logins. It opens the folder now, because servers connect
// concurrently.
func (s *Session) Logins() *oauth.Store {
	dir, err := s.deps.Folders.State()
	return &oauth.Store{Open: func() (*state.Dir, error) { return dir, err }}
}

// OAuthClient returns a client for an expanded server. It reads nothing until
// it is used.
func (s *Session) OAuthClient(server settings.Server, logins *oauth.Store) *oauth.Client {
	return oauth.New(server, logins, func(err error) {
		s.warn("login_unkept", registry.MCPPrefix+server.Name, err.Error(), "")
	})
}

// CachedOffers returns the prompts or the resources of a server that an earlier run
// cached; kind is [mcpclient.OfferPrompts] or [mcpclient.OfferResources]. It starts
// nothing.
func (s *Session) CachedOffers(ctx context.Context, server, kind string) []mcpclient.Offer {
	for _, known := range s.set.Servers {
		if known.Name == server && !known.Disabled && known.Excluded == nil {
			cached, _ := s.cached.OfServer(known).Load(ctx) // an error means that the server must not be queried
			return cached.Offers[kind]
		}
	}
	return nil
}

// ForgetListing removes a server's record from the cache, because another login may see
// other tools.
func (s *Session) ForgetListing(ctx context.Context, server settings.Server) {
	if err := s.cached.OfServer(server).Forget(ctx); err != nil {
		s.deps.Log.Debug("dropping the cached listing failed", "server", server.Name, "err", err)
	}
}

// CachedListings describes the cached listings of sources, the oldest first.
func (s *Session) CachedListings() ([]cache.Kept, error) { return s.cached.Records.List() }
