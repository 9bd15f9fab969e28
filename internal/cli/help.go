package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// ErrOwnHelp is returned by the function passed to [Env.Help] to show the
// command's regular help.
var ErrOwnHelp = errors.New("the command has help of its own")

// Help returns a help function that reads the global flags, calls show, and keeps its
// error for the end of the run. Cobra's help functions can do neither.
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
		e.helpErr = err
	}
}

// newHelpCommand is like cobra's, but an unknown page is an error, and topics
// are completed too.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND | TOPIC]",
		Short:   "Show the help of a command or a topic",
		Long:    "Show the help of a command or of a topic.",
		Example: "  toolreg help servers add\n  toolreg help params",
		ValidArgsFunction: func(cmd *cobra.Command, argv []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var out []cobra.Completion
			if page, rest, err := cmd.Root().Find(argv); err == nil && len(rest) == 0 {
				for _, sub := range page.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						out = append(out, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, argv []string) error {
			page, rest, err := cmd.Root().Find(argv)
			switch {
			case err != nil || page == cmd.Root() && len(argv) > 0:
				return unknownCommand(cmd.Root(), argv[0])
			case len(rest) > 0 && page.HasSubCommands():
				return unknownCommand(page, rest[0])
			}
			return page.Help()
		},
	}
}

// newTopic returns a help page that is not about a command. text returns it, wrapped at
// the given width.
func newTopic(e *Env, name, title string, text func(width int) string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: title}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		e.pageHelp(cmd)
		fmt.Fprint(cmd.OutOrStdout(), title, "\n\n", text(e.IO.WrapWidth()))
	})
	return cmd
}

// pageHelp shows the help of a command in a pager if it is long.
func (e *Env) pageHelp(cmd *cobra.Command) {
	if e.prepare(cmd) == nil { // ignore wrong flags with --help
		e.IO.Page()
	}
}
