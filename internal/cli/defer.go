package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli/complete"
)

// Deferral is the value of --defer.
type Deferral string

// NoDeferral is the default of --defer.
const NoDeferral Deferral = "none"

// Flag adds --defer to a command.
func (d *Deferral) Flag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar((*string)(d), "defer", string(NoDeferral), usage+": `mode` auto (those beyond search.budget), none or all")
	complete.Flag(cmd, "defer", complete.Words("auto", "none", "all"))
}

// On reports whether tools are deferred at all.
func (d Deferral) On() bool { return d != NoDeferral }

// All reports whether tools are deferred even if they fit.
func (d Deferral) All() bool { return d == "all" }

// Check returns an error for other values.
func (d Deferral) Check() error {
	switch d {
	case "auto", NoDeferral, "all":
		return nil
	}
	return &UsageError{Err: fmt.Errorf("--defer %s: must be auto, none or all", string(d))}
}
