package settingscmd

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

func newUnsetCommand(e *cli.Env) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a value from a settings file",
		Long: `Remove a value from your own settings file, or from the one that --scope names.
Comments, order and notation of the rest are kept. KEY is the same as for
"toolreg settings set". It is not an error if the value is not in the file.

Exit codes: 0, 1, 2 (no such setting, or the rest would be invalid without it), 5
(you said no, or inside a tool's run).`,
		Example: `  toolreg settings unset approvalMode
  toolreg settings unset --scope project mcpServers.files.timeout`,
		Args:              cli.ArgsBetween(1, 1, "a KEY"),
		ValidArgsFunction: complete.Arg(e.Complete().SettingKeys),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runUnset(cmd.Context(), e, scope, argv[0])
		},
	}
	settingsfile.ScopeFlag(cmd, &scope, "user", "")
	return cmd
}

func runUnset(ctx context.Context, e *cli.Env, scope, key string) error {
	paths, err := settings.Paths(key)
	if err != nil {
		return unknownKey(err)
	}
	removed := false
	changed, err := change(ctx, e, scope, key, func(file string, old []byte) ([]byte, error) {
		out, err := edit.Unset{Paths: paths}.Apply(file, old)
		removed = !bytes.Equal(old, out)
		return out, err
	})
	switch {
	case err != nil:
		return err
	case !removed:
		return reportChange(ctx, e, scope, changed, "%s is not set in %s")
	}
	return reportChange(ctx, e, scope, changed, "removed %s from %s")
}
