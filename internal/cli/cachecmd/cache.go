// Package cachecmd is the command cache: what is kept to spare asking again.
package cachecmd

import (
	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
)

// New is the command cache.
func New(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Clear cached tool lists, results and pages",
		Long: `Clear the caches: tool lists of sources (cache.discovery),
results of tools (toolOptions) and fetched pages. With --refresh any command
ignores tool lists without clearing them.

Exit codes: 0, 1, 2.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{Use: "clear", Short: "Clear all caches", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runClear(e) }})
	return cmd
}

// cleared says how many files of each kind were removed.
type cleared struct {
	Listings int `json:"listings"`
	Results  int `json:"results"`
	Pages    int `json:"pages"`
}

func runClear(e *cli.Env) error {
	var c cleared
	for _, kind := range []struct {
		folder string
		count  *int
	}{{"discovery", &c.Listings}, {"results", &c.Results}, {"fetch", &c.Pages}} {
		d, err := e.Folders.Cache(kind.folder)
		if err != nil {
			return err
		}
		if *kind.count, err = d.Clear(); err != nil {
			return err
		}
	}
	if e.Globals.JSON {
		return e.PrintJSON(map[string]cleared{"cleared": c})
	}
	e.Notef("removed from the cache: %s, %s, %s", cli.Counted(c.Listings, "listing"), cli.Counted(c.Results, "result"), cli.Counted(c.Pages, "page"))
	return nil
}
