package serverscmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

// whereFound describes the default of --scope for commands that find a server's
// file.
const whereFound = "; default the one that contains the server"

// editCommands returns the subcommands of servers that change a settings file.
func editCommands(e *cli.Env) []*cobra.Command {
	scope := ""
	flag := func(cmd *cobra.Command) *cobra.Command {
		settingsfile.ScopeFlag(cmd, &scope, "", whereFound)
		return cmd
	}
	on, off := false, true
	return []*cobra.Command{
		newAddCommand(e), newAddJSONCommand(e), newImportCommand(e), newEditCommand(e),
		flag(&cobra.Command{Use: "remove NAME", Example: "  toolreg servers remove github", Short: "Remove a server or an API from the settings", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: complete.Arg(e.Complete().Servers), Long: editHelp("Remove a server from the settings file that contains it.", editCodes),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, actionRemoved, edit.Change{Name: argv[0], Drop: true})
			}}),
		flag(&cobra.Command{Use: "enable NAME", Example: "  toolreg servers enable github", Short: "Enable a disabled server", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: complete.Arg(e.Complete().Servers), Long: editHelp("Enable a server by removing disabled from its entry.", editCodes),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "enabled", edit.Change{Name: argv[0], Off: &on})
			}}),
		flag(&cobra.Command{Use: "disable NAME", Example: "  toolreg servers disable github --scope user", Short: "Disable a server without removing it", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: complete.Arg(e.Complete().Servers), Long: editHelp("Disable a server by setting disabled to true.", editCodes),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "disabled", edit.Change{Name: argv[0], Off: &off})
			}}),
	}
}

// editHelp returns the help of a command that changes a settings file.
func editHelp(what, codes string) string {
	return what + `

The file's comments, order and notation are kept. A project whose settings change
has to be trusted again.

Exit codes: 0, 1, 2, 3 (no such server), ` + codes + "."
}

// editCodes are the exit codes of a command that asks nothing.
const editCodes = "5 (inside a tool's run)"

// describedCodes are those of one that installs servers of a registry.
const describedCodes = `4 (a value of --set does not fit),
5 (refused, you said no, or inside a tool's run), 6 (nobody can be asked),
8 (a source failed), 9 (a finding of severity high)`

func runEdit(ctx context.Context, e *cli.Env, scope, action string, entry edit.Change) error {
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	files, err := editable(e, scope)
	if err != nil {
		return err
	}
	return change{action: action, names: []string{entry.Name}, files: files, apply: entry.Apply}.run(ctx, e, s)
}

// editable returns the settings files of a scope, in descending precedence.
func editable(e *cli.Env, scope string) ([]string, error) {
	if scope != "" {
		path, err := settingsfile.Path(e, scope)
		return []string{path}, err
	}
	var out []string
	for _, f := range slices.Backward(e.Config.Globals.Files) {
		if !e.Config.IsPiped(f) {
			out = append(out, e.Config.Absolute(f))
		}
	}
	for _, scope := range []string{"project", "user"} {
		if scope == "user" && settings.UserFolder(e.Config.Environ) == "" {
			continue
		}
		path, err := settingsfile.Path(e, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}
