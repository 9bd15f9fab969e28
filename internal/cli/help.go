package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// ErrOwnHelp is returned by the function passed to [Env.Help] to show the
// command's regular help.
var ErrOwnHelp = errors.New("the command has help of its own")

// Help returns a help function for one that may fail and needs the global
// flags, neither of which cobra's help functions support.
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
