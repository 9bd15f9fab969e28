package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// KeptServers are the servers that outlast a run, see [settings.Settings.KeepOf].
type KeptServers struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Use      mcpclient.KeptUse
	Renew    bool     // see [mcpclient.Keep]
	Command  []string // runs [KeepServer]; without it no server is kept
}

// KeepFor returns for how long this run lets a server outlast it; 0 if it does not.
func (k *KeptServers) KeepFor(server settings.Server) time.Duration {
	if k.Settings.Globals.Fresh || k.Use == mcpclient.OwnServers || len(k.Command) == 0 {
		return 0
	}
	return k.Settings.KeepOf(server)
}

// originOf returns the entry of a server for the name of its socket.
func (k *KeptServers) originOf(server settings.Server) keep.Origin {
	file := server.Origin.Name
	return keep.Origin{Root: k.Settings.ProjectRoot, File: file, Server: server.Name, Entry: k.Settings.ServersWritten()[file][server.Name]}
}

// sockets opens the folder of the sockets.
func (k *KeptServers) sockets(ctx context.Context) (*keep.Folder, error) {
	dir, err := k.Folders.Sockets()
	if err != nil {
		return nil, err
	}
	return keep.Open(ctx, dir, k.Settings.Workspace)
}

// Kept returns the names of the servers that the settings keep between runs, and the folder of
// their sockets and sessions. The error says why none of them, or none over stdio, can be kept.
func Kept(ctx context.Context, folders *state.Folders, set *settings.Settings) (names []string, folder string, err error) {
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

// EndOutdated ends the servers that earlier runs in this project keep for entries that have
// changed or gone since.
func (k *KeptServers) EndOutdated(ctx context.Context, log *slog.Logger) {
	if !slices.ContainsFunc(k.Folders.SocketFolders(), func(dir string) bool { return !keep.IsEmpty(dir) }) {
		return
	}
	folder, err := k.sockets(ctx)
	if err != nil {
		return
	}
	if _, err := stopAll(ctx, folder.Path(), folder.Outdated(k.Settings.ProjectRoot, k.Settings.ServersWritten())); err != nil {
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

// stop ends the processes that keep a server of the settings, whatever its entry said
// when they were started, and returns their number.
func (k *KeptServers) stop(ctx context.Context, server settings.Server) (stopped int, err error) {
	dir, err := k.Folders.Sockets()
	if err != nil || len(keep.Sockets(dir.Path)) == 0 {
		return 0, nil // without a folder nothing is kept
	}
	folder, err := k.sockets(ctx)
	if err != nil {
		return 0, nil
	}
	return stopAll(ctx, folder.Path(), folder.OfServer(k.originOf(server)))
}

// forgetSessions forgets the sessions with an HTTP server of the settings.
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
