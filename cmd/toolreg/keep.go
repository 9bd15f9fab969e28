package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/builtin"
)

// keepName is the command that looks after what runs in the background.
const keepName = "keep-background"

// keeperArgv is how we start ourselves to look after a background command; nil
// where our own file is not known.
func keeperArgv() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, keepName}
}

// newKeepCommand is for toolreg itself: run_shell_command starts it for a
// command in the background.
func newKeepCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use: keepName, Hidden: true, DisableFlagParsing: true,
		// No settings, no flags: its environment is the command's.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, argv []string) error {
			if err := builtin.Keep(argv); err != nil {
				return &usageError{err: err, hint: "run_shell_command with background: true starts it"}
			}
			return nil
		},
	}
}
