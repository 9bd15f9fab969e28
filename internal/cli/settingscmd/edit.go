package settingscmd

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

func newEditCommand(e *cli.Env) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Edit a settings file in your editor",
		Long: `Open your own settings file, or the one that --scope names, in $VISUAL or $EDITOR.
The edited text is checked; if it has mistakes, you can edit it again. The change
is shown and written if you say yes, which for the project's settings also grants
trust.

Exit codes: 0, 1, 5 (you said no, or inside a tool's run), 6 (no terminal).`,
		Example: "  toolreg settings edit\n  toolreg settings edit --scope project",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runEdit(cmd.Context(), e, scope) },
	}
	settingsfile.ScopeFlag(cmd, &scope, "user", "")
	return cmd
}

func runEdit(ctx context.Context, e *cli.Env, scope string) error {
	if err := e.Config.RefuseInside("changing settings"); err != nil {
		return err
	}
	file, err := settingsfile.Path(e, scope)
	if err != nil {
		return err
	}
	old, err := edit.Read(file)
	if err != nil {
		return err
	}
	text, err := edited(ctx, e, file, string(old))
	if err != nil {
		return err
	}
	if text == string(old) {
		e.IO.Notef("%s is unchanged", file)
		return printChanged(e.IO, changedDocument{File: file})
	}
	_, err = settingsfile.Edit(ctx, e, settingsfile.EditOptions{File: file, Ask: true, Change: func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, old) {
			return nil, fmt.Errorf("%s was changed while you edited it; nothing was written", file)
		}
		return []byte(text), nil
	}})
	if err != nil {
		return err
	}
	e.IO.Notef("wrote %s", file)
	if _, err := e.Config.Settings(ctx); err != nil { // problems outside the file, such as missing trust
		return err
	}
	return printChanged(e.IO, changedDocument{File: file})
}

// edited lets the person edit the text of a file and returns the result once it has no
// mistakes.
func edited(ctx context.Context, e *cli.Env, file, text string) (string, error) {
	tty, err := e.Person.Require(&cli.NoTerminalError{What: "settings edit", Instead: "toolreg settings set KEY VALUE works without one"})
	if err != nil {
		return "", err
	}
	defer tty.Close()
	return settingsfile.EditText(ctx, tty, file, text, func(text string) error {
		return settingsfile.Check(ctx, e, file, nil, []byte(text))
	})
}
