package serverscmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/text"
)

func newStartCommands(e *cli.Env) []*cobra.Command {
	command := func(name, short, long string, again bool) *cobra.Command {
		return &cobra.Command{
			Use: name + " NAME…", Short: short, Long: long,
			Example:           "  toolreg servers " + name + " browser",
			ValidArgsFunction: complete.Args(e.Complete().Servers()),
			RunE:              func(cmd *cobra.Command, argv []string) error { return runStart(cmd.Context(), e, argv, again) },
		}
	}
	return []*cobra.Command{
		command("start", "Start servers that outlast a run",
			`Start servers whose entries have the setting keep, unless they run already. They
keep running until no run has used them for that long; calls attach to them.

Exit codes: 0, 2 (also for a server without keep), 3 (no such server), 8 (a
server failed).`, false),
		command("restart", "Stop servers that outlast a run and start them again",
			`Stop the kept processes of servers, and start them again.

Exit codes: 0, 1 (one does not stop), 2 (also for a server without keep), 3 (no
such server), 8 (a server failed).`, true),
	}
}

func newStopCommand(e *cli.Env) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "stop NAME… | --all",
		Short: "Stop servers that outlast a run",
		Long: `Stop the kept processes of servers. Running calls to them fail. --all stops
everything that is kept for you, in all projects.

Exit codes: 0 (also if nothing was kept), 1 (one does not stop), 2, 3 (no such
server).`,
		Example: `  toolreg servers stop browser
  toolreg servers stop --all`,
		ValidArgsFunction: complete.Args(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if all == (len(argv) > 0) {
				return cli.Usage("give the NAMES of servers, or --all", "see toolreg servers stop --help")
			}
			return runStop(cmd.Context(), e, argv)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop all servers that are kept for you")
	return cmd
}

func runStart(ctx context.Context, e *cli.Env, names []string, again bool) error {
	if len(names) == 0 {
		return cli.Usage("give the NAMES of servers", "")
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Kept: mcpclient.MustKeep}})
	if err != nil {
		return err
	}
	if s.Settings.Globals.Fresh {
		return cli.Usage("--fresh uses no kept servers", "run it without --fresh, and unset TOOLREG_FRESH")
	}
	on, off, err := s.Servers.Named(names...)
	if err != nil {
		return err
	}
	for _, api := range s.Servers.APIs(names...) {
		return &cli.UsageError{Err: fmt.Errorf("%q is an API, which is not started", api.Settings().Name)}
	}
	for _, server := range off {
		return cli.Usage(fmt.Sprintf("server %q cannot be started: %s", server.Name, server.Reason()),
			server.Hint())
	}
	for _, server := range on {
		if entry := server.Settings(); entry.Err == nil && s.Settings.KeepOf(entry) <= 0 {
			why, hint := "has no keep", "add keep: 10m to the entry"
			switch {
			case entry.PerClient:
				why, hint = "has perClient, so each client has a process of its own", "remove perClient from the entry"
			case entry.Type == "sse":
				why, hint = "has type sse, whose sessions cannot be kept", "use type http if the server supports it"
			}
			return cli.Usage(
				fmt.Sprintf("server %q ends with each run: its entry (%s) %s", entry.Name, entry.Origin, why), hint)
		}
	}
	var infos []mcpclient.Info
	for _, server := range on {
		entry := server.Settings()
		if again {
			if _, err := s.Connections.EndKept(ctx, server); err != nil {
				return fmt.Errorf("stopping server %q: %w", entry.Name, err)
			}
		}
		if err := server.Retry(ctx); err != nil {
			return err
		}
		info := server.Info()
		if info.Kept == nil {
			return fmt.Errorf("server %q cannot be kept; --verbose says why, unless it speaks the older HTTP with server-sent events", info.Name)
		}
		infos = append(infos, info)
		running := "is connected"
		if info.Kept.PID != 0 {
			running = fmt.Sprintf("runs (PID %d)", info.Kept.PID)
		}
		e.IO.Notef("server %q %s; it stops once it has been idle for %s",
			info.Name, running, s.Settings.KeepOf(entry).Round(time.Millisecond))
	}
	return e.IO.Report(map[string][]mcpclient.Info{"servers": infos})
}

// stopped is the JSON of servers stop.
type stopped struct {
	Stopped int `json:"stopped"` // number of processes
}

func runStop(ctx context.Context, e *cli.Env, names []string) error {
	var out stopped
	var err error
	if len(names) == 0 {
		out.Stopped, err = stopAll(ctx, e)
	} else {
		out.Stopped, err = stopNamed(ctx, e, names)
	}
	if err != nil {
		return err
	}
	note := "nothing was running"
	if out.Stopped > 0 {
		note = "stopped " + text.Count(out.Stopped, "server")
	}
	e.IO.Notef("%s", note)
	return e.IO.Report(out)
}

// stopAll stops all kept servers. Sessions with HTTP servers can be ended only if their entries
// apply here; others are forgotten.
func stopAll(ctx context.Context, e *cli.Env) (stopped int, err error) {
	if sources.KeepsSessions(e.Config.Folders) {
		if s, err := e.Engine.Session(ctx, cli.SessionOptions{}); err == nil {
			on, _, _ := s.Servers.Named() // no name, so none is missing
			for _, server := range on {
				if was, _ := server.EndKept(ctx); was {
					stopped++
				}
			}
		}
	}
	n, err := sources.StopAllKept(ctx, e.Config.Folders)
	return stopped + n, err
}

func stopNamed(ctx context.Context, e *cli.Env, names []string) (stopped int, err error) {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return 0, err
	}
	on, off, err := s.Servers.Named(names...)
	if err != nil {
		return 0, err
	}
	for _, server := range on {
		n, err := s.Connections.EndKept(ctx, server)
		if err != nil {
			return stopped, fmt.Errorf("stopping server %q: %w", server.Settings().Name, err)
		}
		stopped += n
	}
	for _, server := range off { // it may have been disabled since it was started
		n, err := s.Connections.StopKept(ctx, server.Server)
		if err != nil {
			return stopped, fmt.Errorf("stopping server %q: %w", server.Name, err)
		}
		stopped += n
	}
	return stopped, nil
}
