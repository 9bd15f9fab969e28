package cli

import (
	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
)

// NewKeepCommand returns an internal command, which run_shell_command starts
// for a background command.
func NewKeepCommand(*Env) *cobra.Command {
	return &cobra.Command{
		Use: KeepCommand, Hidden: true, DisableFlagParsing: true,
		// No settings and flags: its environment is the command's.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, argv []string) error {
			if err := builtin.Keep(cmd.Context(), argv); err != nil {
				return &UsageError{Err: err, Hint: "run_shell_command with background: true starts it"}
			}
			return nil
		},
	}
}
