package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// NewVersionCommand prints the version.
func NewVersionCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if e.Globals.JSON {
				return e.PrintJSON(map[string]string{"version": e.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(e.Out, "toolreg %s (%s %s/%s)\n", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
