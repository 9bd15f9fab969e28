package serverscmd

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

func newOutdatedCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "outdated",
		Short: "Show servers that their registry has a newer version of",
		Long: `Compare the servers that servers add got from registries with what the registries
have now. Servers that are up to date are only in the JSON.

In a pipe each server is one line: name of the entry, version, latest version,
status of the latest version, name in the registry and the registry, separated by
tabs.

Exit codes: 0, 2, 8 (no registry could be asked).`,
		Example: `  toolreg servers outdated`,
		Args:    cli.ArgsBetween(0, 0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runOutdated(cmd.Context(), e) },
	}
}

// outdatedServer compares the entry of a server with its registry.
type outdatedServer struct {
	Name     string `json:"name"`    // of the entry
	Version  string `json:"version"` // of the entry
	Latest   string `json:"latest,omitempty"`
	Outdated bool   `json:"outdated"`
	// Status is that of the latest version: active, deprecated or deleted; or missing if the
	// registry no longer has the server.
	Status   string `json:"status"`
	Server   string `json:"server"` // its name in the registry
	Registry string `json:"registry"`
}

// statusMissing is the status of a server that its registry no longer has.
const statusMissing = "missing"

func runOutdated(ctx context.Context, e *cli.Env) error {
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(s.Servers),
		func(server settings.Server) bool { return server.From == nil || server.From.Registry == "" })
	var known []*mcpregistry.Registry
	if len(servers) > 0 {
		if known, err = installer(e, s).Registries(ctx); err != nil {
			return err
		}
	}
	all, failed := make([]outdatedServer, len(servers)), make([]error, len(servers))
	var asking sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range servers {
		from := servers[i].From
		r, err := install.RegistryAt(known, from.Registry)
		if err != nil {
			failed[i] = err
			continue
		}
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			all[i] = outdatedServer{
				Name:     servers[i].Name,
				Version:  from.Version,
				Server:   from.Name,
				Registry: from.Registry,
				Status:   statusMissing,
			}
			entry, err := r.Get(ctx, from.Name, mcpregistry.Latest)
			switch {
			case errors.Is(err, registry.ErrNotFound):
			case err != nil:
				failed[i] = err
			default:
				all[i].Latest, all[i].Status = entry.Server.Version, entry.Status
				all[i].Outdated = install.CompareVersions(entry.Server.Version, from.Version) > 0
			}
		})
	}
	asking.Wait()
	if len(servers) > 0 && !slices.Contains(failed, nil) {
		return failed[0]
	}
	found := []outdatedServer{}
	for i, err := range failed {
		if err != nil {
			warnFailed(e.IO, err)
			continue
		}
		found = append(found, all[i])
	}
	t := &ui.Table{Header: []string{"NAME", "VERSION", "LATEST", "STATUS", "SERVER", "REGISTRY"},
		Spare: []string{"REGISTRY", "SERVER"}}
	for _, o := range found {
		if o.Outdated || o.Status != mcpregistry.Active {
			t.Add(o.Name, o.Version, o.Latest, o.Status, o.Server, o.Registry)
		}
	}
	if len(t.Rows) > 0 {
		e.IO.Summary("%s", text.Count(len(t.Rows), "server")+"; toolreg servers upgrade NAME upgrades one")
	} else {
		e.IO.Notef("no newer version of %s that registries gave", text.Count(len(found), "server"))
	}
	return e.IO.PrintResult(map[string][]outdatedServer{"servers": found}, t, "")
}
