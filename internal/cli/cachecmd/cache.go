// Package cachecmd implements the command cache, which shows and clears caches.
package cachecmd

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/owner"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// New returns the command cache, which lists the caches if it has no
// subcommand.
func New(e *cli.Env) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), e) }
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show and clear cached tool lists, results and pages",
		Long: `Show the caches: tool lists of sources (cache.discovery), results of tools
(toolOptions) and fetched pages. With --refresh any command ignores tool lists
without clearing them.

Exit codes: 0, 1, 2.`,
		Example: "  toolreg cache\n  toolreg cache clear",
		Args:    cli.NoArgs,
		RunE:    list,
	}
	cmd.AddCommand(&cobra.Command{Use: "list", Short: "Show what is cached", Args: cli.NoArgs, RunE: list,
		Long: `Show the cached tool lists of sources, the oldest first, and how many results and
pages are cached.

In a pipe each is one line: kind, source, number of files, bytes and the time of
the list, separated by tabs. Exit codes: 0, 1, 2.`,
		Example: "  toolreg cache list --json"},
		clearCommand(e))
	return cmd
}

func clearCommand(e *cli.Env) *cobra.Command {
	names := false
	cmd := &cobra.Command{Use: "clear", Short: "Clear all caches", Args: cli.NoArgs,
		Long: `Remove every cached tool list, result and page.

With --names also forget, for this project, which server each plain name of a tool
belongs to. The next run gives the names to the servers in the order of the settings.

Exit codes: 0, 1, 2, 5 (--names inside a tool's run).`,
		Example: "  toolreg cache clear\n  toolreg cache clear --names",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runClear(cmd.Context(), e, names) }}
	cmd.Flags().BoolVar(&names, "names", false,
		"also forget which server each name of a tool belongs to in this project")
	return cmd
}

// kept is one row of the output: the tool list of a source, or all files of another
// kind.
type kept struct {
	Kind   string     `json:"kind"` // listing, results, pages
	Source string     `json:"source,omitempty"`
	Files  int        `json:"files"`
	Bytes  int64      `json:"bytes"`
	Stored *time.Time `json:"stored,omitempty"` // of a listing
}

func runList(ctx context.Context, e *cli.Env) error {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Still: true}})
	if err != nil {
		return err
	}
	listings, err := s.Records.List()
	if err != nil {
		return err
	}
	rows := []kept{}
	for _, l := range listings {
		rows = append(rows, kept{Kind: "listing", Source: l.Source, Files: 1, Bytes: l.Bytes, Stored: &l.Stored})
	}
	for _, kind := range []struct{ folder, name string }{{"results", "results"}, {"fetch", "pages"}} {
		row := kept{Kind: kind.name}
		d, err := e.Config.Folders.Cache(kind.folder)
		if err != nil {
			return err
		}
		files, err := d.Files()
		if err != nil {
			return err
		}
		for _, f := range files {
			row.Files++
			row.Bytes += f.Size()
		}
		if row.Files > 0 {
			rows = append(rows, row)
		}
	}
	return printKept(e.IO, rows)
}

func printKept(ios *cli.IO, rows []kept) error {
	if len(rows) == 0 {
		ios.Notef("nothing is cached")
	}
	t := ui.Table{Header: []string{"KIND", "SOURCE", "FILES", "BYTES", "STORED"}}
	for _, r := range rows {
		stored := ""
		if r.Stored != nil {
			stored = r.Stored.Local().Format(time.DateTime)
		}
		t.Add(r.Kind, r.Source, strconv.Itoa(r.Files), strconv.FormatInt(r.Bytes, 10), stored)
	}
	return ios.PrintResult(map[string][]kept{"cached": rows}, &t, "")
}

// cleared has the number of removed files of each kind.
type cleared struct {
	Listings int `json:"listings"`
	Results  int `json:"results"`
	Pages    int `json:"pages"`
	Names    int `json:"names,omitempty"`
}

func runClear(ctx context.Context, e *cli.Env, names bool) error {
	var c cleared
	if names {
		if err := e.Config.RefuseInside("forgetting names"); err != nil { // rules are about them
			return err
		}
		set, err := e.Config.Settings(ctx)
		if err != nil {
			return err
		}
		record, err := owner.Open(set, e.Config.Folders)
		if err != nil {
			return err
		}
		if c.Names, err = record.Forget(ctx); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		folder string
		count  *int
	}{{"discovery", &c.Listings}, {"results", &c.Results}, {"fetch", &c.Pages}} {
		d, err := e.Config.Folders.Cache(kind.folder)
		if err != nil {
			return err
		}
		if *kind.count, err = d.Clear(); err != nil {
			return err
		}
	}
	e.IO.Notef("removed from the cache: %s, %s, %s",
		text.Count(c.Listings, "listing"), text.Count(c.Results, "result"), text.Count(c.Pages, "page"))
	if names {
		e.IO.Notef("forgot to which server %s of tools belonged", text.Count(c.Names, "name"))
	}
	return e.IO.Report(map[string]cleared{"cleared": c})
}
