package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// keepFor returns for how long this run lets a server outlast it; 0 if it does not.
func (r *run) keepFor(server settings.Server) time.Duration {
	if r.set.Globals.Fresh || r.opts.Kept == mcpclient.OwnServers || len(r.deps.ServerKeeper) == 0 {
		return 0
	}
	return r.set.KeepOf(server)
}

// keep returns how a server is kept between runs; nil if it is not.
func (c *Connections) keep(server settings.Server) *mcpclient.Keep {
	d := c.keepFor(server)
	if d <= 0 {
		return nil
	}
	return &mcpclient.Keep{
		For: d, Use: c.opts.Kept, Lists: c.opts.List || c.opts.Guard, Renew: c.opts.Cache == cache.Live || c.opts.Cache == cache.Renew,
		Consent: c.set.Globals.TrustProject && server.Origin.Scope == settings.ScopeProject,
		Origin:  func() keep.Origin { return c.originOf(server) }, Folder: c.sockets, Command: c.deps.ServerKeeper,
		Plan: func(_ context.Context, spec *process.Spec) (json.RawMessage, error) {
			plan, err := c.confiner.Plan(confine.Server(server.Name), spec)
			if plan == nil {
				return nil, err
			}
			return json.Marshal(plan)
		},
	}
}

// originOf returns the entry of a server for the name of its socket.
func (r *run) originOf(server settings.Server) keep.Origin {
	file := server.Origin.Name
	return keep.Origin{Root: r.set.ProjectRoot, File: file, Server: server.Name, Entry: r.set.ServersWritten()[file][server.Name]}
}

// sockets opens the folder of the sockets.
func (r *run) sockets(ctx context.Context) (*keep.Folder, error) {
	dir, err := r.deps.Folders.Sockets()
	if err != nil {
		return nil, err
	}
	return keep.Open(ctx, dir, r.set.Workspace)
}

// Kept returns the names of the servers that the settings keep between runs, and the folder of
// their sockets and sessions. The error says why none of them, or none over stdio, can be kept.
func Kept(ctx context.Context, folders *state.Folders, set *settings.Settings) (names []string, folder string, err error) {
	processes := false
	for _, server := range set.Servers {
		if set.KeepOf(server) > 0 && !server.Disabled && server.Excluded == nil {
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

// endOutdated ends the servers that earlier runs in this project keep for entries that have
// changed or gone since.
func (r *run) endOutdated(ctx context.Context) {
	if !slices.ContainsFunc(r.deps.Folders.SocketFolders(), func(dir string) bool { return !keep.IsEmpty(dir) }) {
		return
	}
	folder, err := r.sockets(ctx)
	if err != nil {
		return
	}
	if _, err := stopAll(ctx, folder.Path(), folder.Outdated(r.set.ProjectRoot, r.set.ServersWritten())); err != nil {
		r.deps.Log.Info("a kept server whose settings have changed was not stopped", "err", err)
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
	dir, err := c.deps.Folders.Sockets()
	if err != nil || len(keep.Sockets(dir.Path)) == 0 {
		return 0, nil // without a folder nothing is kept
	}
	folder, err := c.sockets(ctx)
	if err != nil {
		return 0, nil
	}
	return stopAll(ctx, folder.Path(), folder.OfServer(c.originOf(server)))
}

// forgetSessions forgets the sessions with an HTTP server of the settings.
func (c *Connections) forgetSessions(ctx context.Context, server settings.Server) {
	if !KeepsSessions(c.deps.Folders) {
		return
	}
	if folder, err := c.sockets(ctx); err == nil {
		folder.ForgetSessionsOf(c.originOf(server))
	}
}

// KeepsSessions reports whether a session with an HTTP server is kept for this user.
func KeepsSessions(folders *state.Folders) bool {
	return slices.ContainsFunc(folders.SocketFolders(), func(dir string) bool { return len(keep.Sessions(dir)) > 0 })
}

// StopAllKept ends all processes that keep servers of this user and forgets their sessions
// with HTTP servers, and returns the number of both.
func StopAllKept(ctx context.Context, folders *state.Folders) (stopped int, err error) {
	var failed []error
	for _, dir := range folders.SocketFolders() {
		n, err := stopAll(ctx, dir, keep.Sockets(dir))
		sessions := keep.ForgetSessions(dir, func(string) bool { return true })
		stopped, failed = stopped+n+sessions, append(failed, err)
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
