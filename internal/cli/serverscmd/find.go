package serverscmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

func newFindCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "find QUERY…",
		Short: "Search registries for MCP servers",
		Long: `Search for servers in the registries that the setting registries lists, by default
the official MCP registry. Registries search only names, so the longest word of the
query must be in the name, and have at least 3 characters. The other words may be
in the name, the title or the description.

In a pipe each server is one line: name, title, version, how it can be run, what it
needs, status, registry and description, separated by tabs.

Exit codes: 0, 2, 8 (no registry could be asked).`,
		Example: `  toolreg servers find github
  toolreg servers find postgres read-only --json`,
		Args: cli.ArgsBetween(1, -1, "a QUERY"),
		RunE: func(cmd *cobra.Command, argv []string) error { return runFind(cmd.Context(), e, argv) },
	}
}

// foundServer is a server of a registry as JSON.
type foundServer struct {
	Name        string     `json:"name"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description"`
	Version     string     `json:"version"` // the latest
	Status      string     `json:"status"`  // active, deprecated
	Published   *time.Time `json:"published,omitempty"`
	Repository  string     `json:"repository,omitempty"`
	Registry    string     `json:"registry"` // its address
	Runs        []foundWay `json:"runs"`
}

type foundWay struct {
	Runtime string   `json:"runtime"` // npm, pypi, oci, nuget, mcpb, remote
	Package string   `json:"package"` // with its version; the address of a remote server
	Needs   []string `json:"needs"`   // names of the required values
}

func newFound(entry *mcpregistry.Entry, address string) foundServer {
	s := entry.Server
	f := foundServer{
		Name: s.Name, Title: s.Title, Description: s.Description, Version: s.Version, Status: entry.Status,
		Repository: s.Repository.URL, Registry: address, Runs: []foundWay{},
	}
	if !entry.Published.IsZero() {
		f.Published = &entry.Published
	}
	for _, way := range s.Ways() {
		w := foundWay{Runtime: way.Runtime, Package: way.Origin(), Needs: []string{}}
		for _, in := range way.Inputs() {
			if in.Required && in.Default == "" {
				w.Needs = append(w.Needs, in.Name)
			}
		}
		f.Runs = append(f.Runs, w)
	}
	return f
}

func runFind(ctx context.Context, e *cli.Env, argv []string) error {
	words := strings.Fields(strings.ToLower(strings.Join(argv, " ")))
	longest := ""
	for _, word := range words {
		if utf8.RuneCountInString(word) > utf8.RuneCountInString(longest) {
			longest = word
		}
	}
	if utf8.RuneCountInString(longest) < mcpregistry.MinWord {
		return cli.Usage(fmt.Sprintf("registries search for words of at least %d characters", mcpregistry.MinWord),
			"give a longer word of the server's name")
	}
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	registries, err := installer(e, s).Registries(ctx)
	if err != nil {
		return err
	}
	found, err := search(ctx, e.IO, registries, longest, words)
	if err != nil {
		return err
	}
	return printFound(e.IO, found, longest)
}

// search asks all registries for servers that contain all words. It fails if all registries fail;
// if only some do, it warns.
func search(ctx context.Context, ios *cli.IO, registries []*mcpregistry.Registry,
	longest string, words []string) ([]foundServer, error) {
	found, failed, unreadable := make([][]foundServer, len(registries)), make([]error, len(registries)),
		make([]int, len(registries))
	var asking sync.WaitGroup
	for i, r := range registries {
		asking.Go(func() {
			seen := map[string]bool{}
			unreadable[i], failed[i] = r.Search(ctx, longest, func(entry *mcpregistry.Entry) {
				server := entry.Server
				text := strings.ToLower(server.Name + "\n" + server.Title + "\n" + server.Description)
				hasAll := !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
				if hasAll && entry.Status != mcpregistry.Deleted && !seen[server.Name] {
					seen[server.Name] = true
					found[i] = append(found[i], newFound(entry, r.URL))
				}
			})
		})
	}
	asking.Wait()
	if !slices.Contains(failed, nil) {
		return nil, errors.Join(failed...)
	}
	out := []foundServer{}
	for i, err := range failed {
		if err != nil {
			warnFailed(ios, err)
		}
		if unreadable[i] > 0 {
			ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "registry_entry_unreadable",
				Message: fmt.Sprintf("registry %s: left out %s that cannot be read",
					registries[i].URL, text.Count(unreadable[i], "server"))})
		}
		out = append(out, found[i]...)
	}
	return out, nil
}

// warnFailed warns that a registry could not answer while others did.
func warnFailed(ios *cli.IO, err error) {
	ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "registry_failed", Message: err.Error()})
}

func printFound(ios *cli.IO, found []foundServer, longest string) error {
	if len(found) > 0 {
		ios.Summary("%s", text.Count(len(found), "server")+"; toolreg servers add NAME adds one")
	} else {
		ios.Notef("no server found; registries search only names, here for %q", longest)
	}
	t := &ui.Table{
		Header: []string{"NAME", "TITLE", "VERSION", "RUNS", "NEEDS", "STATUS", "REGISTRY", "DESCRIPTION"},
		Spare:  []string{"REGISTRY", "TITLE", "STATUS", "NEEDS"},
	}
	for _, f := range found {
		var runs, needs []string
		for _, way := range f.Runs {
			runs, needs = append(runs, way.Runtime), append(needs, way.Needs...)
		}
		t.Add(f.Name, f.Title, f.Version, joinDistinct(runs), joinDistinct(needs), f.Status, f.Registry, f.Description)
	}
	return ios.PrintResult(map[string][]foundServer{"servers": found}, t, "")
}

func joinDistinct(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

func installer(e *cli.Env, s *settings.Settings) *install.Installer {
	return &install.Installer{
		Settings: s,
		Folders:  e.Config.Folders,
		Environ:  e.Config.Environ,
		Dir:      e.Config.Dir,
		Agent:    "toolreg/" + e.Version,
	}
}

func newOutdatedCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "outdated",
		Short: "Show servers with a newer version in their registry",
		Long: `Compare the servers that were added from registries with their latest versions
there. Servers that are up to date are only in the JSON.

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
