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
		Long: `Search the registries of the setting registries, by default the official MCP
registry, for servers. Registries search only names, so the longest word of the
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

// search asks all registries for the servers that contain all words. It fails if all
// registries do, and warns of those that do beside others.
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
