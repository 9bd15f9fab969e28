package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// KeptServers starts and ends servers that outlast a run; see [settings.Settings.KeepOf].
type KeptServers struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Use      mcpclient.KeptUse
	Renew    bool     // see [mcpclient.Keep]
	Command  []string // runs [KeepServer]; without it no server is kept
}

// KeepFor returns for how long a server outlasts this run; zero means that it does not.
func (k *KeptServers) KeepFor(server settings.Server) time.Duration {
	if k.Settings.Globals.Fresh || k.Use == mcpclient.OwnServers || len(k.Command) == 0 {
		return 0
	}
	return k.Settings.KeepOf(server)
}

// originOf returns what the name of a server's socket is made from.
func (k *KeptServers) originOf(server settings.Server) keep.Origin {
	file := server.Origin.Name
	return keep.Origin{Root: k.Settings.ProjectRoot, File: file,
		Server: server.Name, Entry: k.Settings.ServersWritten()[file][server.Name]}
}

func (k *KeptServers) sockets(ctx context.Context) (*keep.Folder, error) {
	dir, err := k.Folders.Sockets()
	if err != nil {
		return nil, err
	}
	return keep.Open(ctx, dir, k.Settings.Workspace)
}

// Kept returns the names of the servers that the settings keep between runs, and the folder of
// their sockets and sessions. The error says why no server, or no server over stdio, can be kept.
func Kept(ctx context.Context, folders *state.Folders,
	set *settings.Settings) (names []string, folder string, err error) {
	processes := false
	for _, server := range set.Servers {
		if set.KeepOf(server) > 0 && !server.IsOff() {
			names = append(names, server.Name)
			processes = processes || server.Command != ""
		}
	}
	if len(names) == 0 {
		return nil, "", nil
	}
	dir, err := folders.Sockets()
	if err != nil {
		return names, "", err
	}
	opened, err := keep.Open(ctx, dir, set.Workspace)
	if err == nil && processes {
		err = opened.HasRoom()
	}
	return names, dir.Path, err
}

// EndOutdated ends servers that earlier runs in this project kept for entries that have changed or
// been removed since.
func (k *KeptServers) EndOutdated(ctx context.Context, log *slog.Logger) {
	if !slices.ContainsFunc(k.Folders.SocketFolders(), func(dir string) bool { return !keep.IsEmpty(dir) }) {
		return
	}
	folder, err := k.sockets(ctx)
	if err != nil {
		return
	}
	if _, err := stopAll(ctx, folder.Path(),
		folder.Outdated(k.Settings.ProjectRoot, k.Settings.ServersWritten())); err != nil {
		log.Info("a kept server whose settings have changed was not stopped", "err", err)
	}
}

// KeepServer is [mcpclient.KeepServer] for servers of the settings.
func KeepServer(ctx context.Context, in io.Reader, listening func(error) error) error {
	return mcpclient.KeepServer(ctx, in, listening, func(raw json.RawMessage) (process.Confiner, error) {
		plan := &confine.Plan{}
		if err := json.Unmarshal(raw, plan); err != nil {
			return nil, err
		}
		return plan.Confine, nil
	})
}

// stop ends all processes that keep a server of the settings, also those started for an earlier
// version of its entry, and returns their number.
func (k *KeptServers) stop(ctx context.Context, server settings.Server) (stopped int, err error) {
	dir, err := k.Folders.Sockets()
	if err != nil || keep.IsEmpty(dir.Path) {
		return 0, nil // without a folder nothing is kept
	}
	folder, err := k.sockets(ctx)
	if err != nil {
		return 0, nil
	}
	return stopAll(ctx, folder.Path(), folder.OfServer(k.originOf(server)))
}

func (k *KeptServers) forgetSessions(ctx context.Context, server settings.Server) {
	if !KeepsSessions(k.Folders) {
		return
	}
	if folder, err := k.sockets(ctx); err == nil {
		folder.ForgetSessionsOf(k.originOf(server))
	}
}

// KeepsSessions reports whether a session with an HTTP server is kept for this user.
func KeepsSessions(folders *state.Folders) bool {
	return slices.ContainsFunc(folders.SocketFolders(), func(dir string) bool {
		_, sessions := keep.Names(dir)
		return len(sessions) > 0
	})
}

// StopAllKept ends all processes that keep servers of this user, forgets their sessions with HTTP
// servers, and returns the number of both.
func StopAllKept(ctx context.Context, folders *state.Folders) (stopped int, err error) {
	var failed []error
	for _, dir := range folders.SocketFolders() {
		sockets, _ := keep.Names(dir)
		n, err := stopAll(ctx, dir, sockets)
		forgotten := keep.ForgetSessions(dir, func(string) bool { return true })
		stopped, failed = stopped+n+forgotten, append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return stopped, fmt.Errorf("stopping kept servers: %w", err)
	}
	return stopped, nil
}

func stopAll(ctx context.Context, dir string, names []string) (stopped int, err error) {
	was := make([]bool, len(names))
	failed := make([]error, len(names))
	var stopping sync.WaitGroup
	for i, name := range names {
		stopping.Go(func() { was[i], failed[i] = keep.Stop(ctx, dir, name) })
	}
	stopping.Wait()
	for _, ok := range was {
		if ok {
			stopped++
		}
	}
	return stopped, errors.Join(failed...)
}

// link is a server's place in the session that uses it. If a server's settings are unchanged when
// settings are read again, the server continues in the new session, and asks, logs and stores
// through it. It implements [mcpclient.Memory].
type link struct {
	source *mcpclient.Source
	now    atomic.Pointer[mcpclient.Options] // of the session that owns the server
}

func newLink(o mcpclient.Options) *link {
	l, given := &link{}, o
	l.now.Store(&given)
	if o.Memory != nil {
		o.Memory = l
	}
	o.Expand = func(ctx context.Context, s settings.Server) (settings.Server, error) {
		return l.now.Load().Expand(ctx, s)
	}
	o.Hide = func(text string) string { return l.now.Load().Hide(text) }
	o.Auth = func(s settings.Server) wire.Authorizer { return l.now.Load().Auth(s) }
	o.Confine = func(ctx context.Context, spec *process.Spec) (func(), error) { return l.now.Load().Confine(ctx, spec) }
	o.Elicit = func(ctx context.Context, e ask.Elicitation) (ask.Answer, error) { return l.now.Load().Elicit(ctx, e) }
	o.Refused = func(server, what, reason string) { l.now.Load().Refused(server, what, reason) }
	if o.Sample != nil {
		o.Sample = func(ctx context.Context, s ask.Sampling) (json.RawMessage, error) {
			return l.now.Load().Sample(ctx, s)
		}
	}
	if o.Keep != nil {
		k := *o.Keep
		k.Origin = func() keep.Origin { return l.now.Load().Keep.Origin() }
		k.Folder = func(ctx context.Context) (*keep.Folder, error) { return l.now.Load().Keep.Folder(ctx) }
		k.Plan = func(ctx context.Context, spec *process.Spec) (json.RawMessage, error) {
			return l.now.Load().Keep.Plan(ctx, spec)
		}
		o.Keep = &k
	}
	l.source = mcpclient.New(o)
	return l
}

func (l *link) Load(ctx context.Context) (mcpclient.Known, error) {
	return l.now.Load().Memory.Load(ctx)
}

func (l *link) Protocol(ctx context.Context) string { return l.now.Load().Memory.Protocol(ctx) }

func (l *link) Save(ctx context.Context, known mcpclient.Known) { l.now.Load().Memory.Save(ctx, known) }

// place identifies a link: the name of the server and, if it uses a client's login, the name of the
// client.
type place struct{ server, client string }

// links are the servers of a session. Some of them may still be owned by an earlier session.
type links struct {
	confiner *confine.Confiner
	earlier  *links // of the session to replace, or nil

	mu     sync.Mutex
	all    map[place]*link
	shared map[*link]*mcpclient.Options // with earlier, and their options in this session
}

func (a *links) remove(at place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.shared, a.all[at])
	delete(a.all, at)
}

// server returns a server with these options: the earlier session's if it can continue, or else a
// new one. client is the client whose login is used; "" means the person's.
func (a *links) server(o mcpclient.Options, client string) *mcpclient.Source {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := place{o.Server.Name, client}
	if a.earlier != nil {
		if l := a.earlier.all[at]; l != nil && canContinue(l, &o) &&
			a.confiner.Same(confine.Server(at.server), a.earlier.confiner) {
			a.all[at], a.shared[l] = l, &o
			return l.source
		}
	}
	a.all[at] = newLink(o)
	return a.all[at].source
}

// canContinue reports whether a running server can get other options, because none that matter to
// its process differ. A failed server cannot: the change may have fixed it.
func canContinue(l *link, o *mcpclient.Options) bool {
	before := l.now.Load()
	return l.source.Info().State != mcpclient.StateFailed &&
		(before.Folder == nil) == (o.Folder == nil) && (before.Sample == nil) == (o.Sample == nil) &&
		reflect.DeepEqual(processOptions(*before), processOptions(*o))
}

// processOptions returns the options of a server without functions, places in settings files
// and filters, which the registry applies.
func processOptions(o mcpclient.Options) mcpclient.Options {
	s := &o.Server
	s.Origin.Line, s.Origin.Col, s.TrustOrigin = 0, 0, settings.Origin{}
	s.IncludeTools, s.ExcludeTools = settings.List{}, settings.List{}
	s.Env, s.Headers = withoutPlaces(s.Env), withoutPlaces(s.Headers)
	o.Expand, o.Hide, o.Folder, o.Memory, o.Auth, o.Confine = nil, nil, nil, nil, nil, nil
	o.Logger, o.OnState, o.OnLog, o.Callbacks = nil, nil, nil, ask.Callbacks{}
	if o.Keep != nil {
		k := *o.Keep
		k.Origin, k.Folder, k.Plan = nil, nil, nil
		o.Keep = &k
	}
	return o
}

func withoutPlaces(pairs []settings.Pair) []settings.Pair {
	out := slices.Clone(pairs)
	for i := range out {
		out[i].Origin = settings.Origin{}
	}
	return out
}

// takeOver makes this session the owner of the servers that it shares with the earlier one. It
// calls released with each.
func (a *links) takeOver(released func(registry.Source)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l, o := range a.shared {
		l.now.Store(o)
		released(l.source)
	}
	a.shared, a.earlier = nil, nil
}

// release calls released with each server that the earlier session still owns.
func (a *links) release(released func(registry.Source)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.shared {
		released(l.source)
	}
}
