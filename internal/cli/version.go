package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// NewVersionCommand prints the version.
func NewVersionCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of toolreg, of Go, and the system it was built for, as\ntoolreg --version does.\n\nExit codes: 0, 2.",
		Example: "  toolreg version --json",
		Args:    NoArgs,
		RunE:    func(*cobra.Command, []string) error { return e.printVersion() },
	}
}

func (e *Env) printVersion() error {
	if e.Globals.JSON {
		return e.PrintJSON(map[string]string{"version": e.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
	}
	_, err := fmt.Fprintf(e.Out, "toolreg %s (%s %s/%s)\n", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
