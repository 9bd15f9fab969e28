package serverscmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

func newEditCommand(e *cli.Env) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Edit the entry of a server in your editor",
		Long: `Open the entry of a server in $VISUAL or $EDITOR. The edited text is checked;
if it has mistakes, you can edit it again. The change is shown and written if you
say yes, which for the project's settings also grants trust.

Exit codes: 0, 1, 2, 3 (no such server), 5 (you said no, or inside a tool's run),
6 (no terminal).`,
		Example:           "  toolreg servers edit github",
		Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
		ValidArgsFunction: complete.Arg(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runEditEntry(cmd.Context(), e, scope, argv[0])
		},
	}
	settingsfile.ScopeFlag(cmd, &scope, "", whereFound)
	return cmd
}

func runEditEntry(ctx context.Context, e *cli.Env, scope, name string) error {
	if err := e.Config.RefuseInside("changing settings"); err != nil {
		return err
	}
	file, data, entry, err := findEntry(ctx, e, scope, name)
	if err != nil {
		return err
	}
	tty, err := e.Person.Require(cli.NoTerminal("servers edit",
		"toolreg settings set "+edit.Setting(file, data, name)+".FIELD VALUE works without one"))
	if err != nil {
		return err
	}
	defer tty.Close()
	text, err := settingsfile.EditText(ctx, tty, file, string(entry), func(text string) error {
		_, err := edit.Rewrite{Name: name, Text: []byte(text)}.Apply(file, data)
		return err
	})
	if err != nil {
		return err
	}
	if text == string(entry) {
		e.IO.Notef("server %q in %s is unchanged", name, file)
		return nil
	}
	return change{action: "edited", names: []string{name}, files: []string{file}, ask: true,
		apply: func(_ string, old []byte) ([]byte, error) {
			if now, err := edit.Entry(file, old, name); err != nil || !bytes.Equal(now, entry) {
				return nil, fmt.Errorf("server %q in %s was changed while you edited it; nothing was written",
					name, file)
			}
			return edit.Rewrite{Name: name, Text: []byte(text)}.Apply(file, old)
		}}.run(ctx, e, nil) // the settings are not read, because the edit may correct mistakes in them
}

// findEntry returns the first file that contains a server, the file's content, and the
// server's entry.
func findEntry(ctx context.Context, e *cli.Env, scope, name string) (file string, data, entry []byte, err error) {
	files, err := settingsfile.Paths(e, scope)
	if err != nil {
		return "", nil, nil, err
	}
	for _, file = range files {
		if data, err = edit.Read(file); err != nil {
			return "", nil, nil, err
		}
		if entry, err = edit.Entry(file, data, name); !errors.Is(err, edit.ErrNoServer) {
			return file, data, entry, err
		}
	}
	s, err := e.Config.Settings(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	return "", nil, nil, noServerToEdit(s, name)
}

// whereFound describes the default of --scope for commands that find a server's
// file.
const whereFound = "; default the one that contains the server"

func runEdit(ctx context.Context, e *cli.Env, scope, action string, entry edit.Change) error {
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	files, err := settingsfile.Paths(e, scope)
	if err != nil {
		return err
	}
	return change{action: action, names: []string{entry.Name}, files: files, apply: entry.Apply}.run(ctx, e, s)
}

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
