package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// ErrOwnHelp is what the function of [Env.Help] returns for the help that the
// command itself has.
var ErrOwnHelp = errors.New("the command has help of its own")

// Help makes a help function of one that may fail and needs the global flags,
// which cobra's help knows neither of.
func (e *Env) Help(show func(*cobra.Command) error) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, argv []string) {
		err := e.prepare(cmd)
		if err == nil {
			err = show(cmd)
		}
		if errors.Is(err, ErrOwnHelp) {
			cmd.Root().HelpFunc()(cmd, argv)
			err = nil
		}
		e.unhelped = err
	}
}
