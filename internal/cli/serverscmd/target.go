package serverscmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

// target holds the options for where servers are added and whether they are tested.
type target struct {
	scope  string
	noTest bool
}

func (t *target) flags(cmd *cobra.Command) {
	settingsfile.ScopeFlag(cmd, &t.scope, "user", "")
	cmd.Flags().BoolVar(&t.noTest, "no-test", false, "do not connect to the server to test it")
}

// additions are servers that are added together: either all or none.
type additions []edit.Change

func (a additions) apply(file string, data []byte) (out []byte, err error) {
	for _, c := range a {
		if data, err = c.Apply(file, data); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// addServers adds servers. If list is set, the JSON output is a list.
func (t *target) addServers(ctx context.Context, e *cli.Env, all additions, list bool) error {
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	file, err := settingsfile.Path(e, t.scope)
	if err != nil {
		return err
	}
	c := change{
		action: "added",
		files:  []string{file},
		apply:  all.apply,
		test:   !t.noTest && !e.Config.Globals.Cached,
		list:   list,
	}
	for _, entry := range all {
		c.names = append(c.names, entry.Name)
	}
	return c.run(ctx, e, s)
}
