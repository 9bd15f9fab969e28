package cli

import (
	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
)

// NewKeepCommand is for toolreg itself: run_shell_command starts it for a
// command in the background.
func NewKeepCommand(*Env) *cobra.Command {
	return &cobra.Command{
		Use: KeepCommand, Hidden: true, DisableFlagParsing: true,
		// No settings, no flags: its environment is the command's.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, argv []string) error {
			if err := builtin.Keep(argv); err != nil {
				return &UsageError{Err: err, Hint: "run_shell_command with background: true starts it"}
			}
			return nil
		},
	}
}
