package settingscmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/table"
)

func newSetCommand(e *cli.Env) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use:   "set KEY VALUE…",
		Short: "Set a value in a settings file",
		Long: `Set a value in your own settings file, or in the one that --scope names. The
file is created if it does not exist; its comments, order and notation are
kept.

KEY is a setting by either of its names, or a part of one such as
mcpServers.NAME.timeout. Lists take any number of VALUEs, objects take JSON. Put
-- before VALUEs that begin with a dash. A value of the wrong type is refused, and so
is one with a mistake, such as a rule whose condition is not a jq expression. At a
terminal a change of the project's settings is shown first; if you say yes, it is
written and the project is trusted.

Exit codes: 0, 1, 2 (no such setting, an invalid value), 5 (you said no, or inside a
tool's run).`,
		Example: `  toolreg settings set approvalMode plan
  toolreg settings set excludeTools web_fetch 'github__*'
  toolreg settings set --scope project mcpServers.files.timeout 30s`,
		Args: func(cmd *cobra.Command, argv []string) error {
			if word := readAsFlag(e.Argv, argv); word != "" {
				return cli.Usage(fmt.Sprintf("%s was read as a flag", word), dashHint)
			}
			return cli.ArgsBetween(2, -1, "a KEY and a VALUE")(cmd, argv)
		},
		ValidArgsFunction: complete.Args(e.Complete().SettingKeys(), completeValues),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runSet(cmd.Context(), e, scope, argv[0], argv[1:])
		},
	}
	settingsfile.ScopeFlag(cmd, &scope, "user", "")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.Flags().NArg() > 0 { // the mistake is after the key
			return &cli.UsageError{Err: err, Hint: dashHint}
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

const dashHint = "put -- before the values if one of them begins with a dash"

// readAsFlag returns the first word after the key that the parser took for short flags,
// such as -y; "" if there is none. If it was meant as a value, it would be lost silently.
// The key is the first element of argv.
func readAsFlag(line, argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	for _, word := range line[slices.Index(line, argv[0])+1:] {
		switch {
		case word == "--":
			return ""
		case len(word) > 1 && word[0] == '-' && word[1] != '-':
			return word
		}
	}
	return ""
}

// changedDocument is the JSON of the commands that change a file.
type changedDocument struct {
	Key  string `json:"key,omitempty"`
	File string `json:"file"`
}

func runSet(ctx context.Context, e *cli.Env, scope, key string, words []string) error {
	set, err := edit.Assign(key, words)
	if err != nil {
		return unknownKey(err)
	}
	changed, err := change(ctx, e, scope, key, set.Apply)
	if err != nil {
		return err
	}
	return reportChange(ctx, e, scope, changed, "set %s in %s")
}

// change changes the settings file of a scope. Mistakes that the file had before
// are accepted; new ones are an error.
func change(ctx context.Context, e *cli.Env, scope, key string,
	apply func(file string, old []byte) ([]byte, error)) (changedDocument, error) {
	if err := e.Config.RefuseInside("changing settings"); err != nil {
		return changedDocument{}, err
	}
	file, err := settingsfile.Path(e, scope)
	if err != nil {
		return changedDocument{}, err
	}
	_, err = settingsfile.Edit(ctx, e, file, false, func(old []byte) ([]byte, error) {
		out, err := apply(file, old)
		if err != nil {
			return nil, err
		}
		return out, settingsfile.Check(ctx, e, file, old, out)
	})
	return changedDocument{key, file}, err
}

// reportChange prints what was changed, and what keeps a value from taking effect:
// missing trust, or a scope that overrides it.
func reportChange(ctx context.Context, e *cli.Env, scope string, changed changedDocument, text string) error {
	key, file := changed.Key, changed.File
	e.IO.Notef(text, key, file)
	if err := e.IO.Report(changed); err != nil {
		return err
	}
	s, diags, err := e.Config.Load(ctx)
	if err != nil {
		return err
	}
	if scope == "project" {
		e.IO.Diagnose(diags)
	}
	values, err := s.Merged().Find(key)
	if err != nil || len(values) != 1 {
		return nil // a part of a value has no effective value of its own
	}
	place, known := map[string]settings.Scope{"user": settings.ScopeUser, "project": settings.ScopeProject}[scope]
	if o := values[0].Origin; known && o.Scope > place && o.Name != file {
		settingsfile.WarnShadowed(e.IO, key, o)
	}
	return nil
}

// completeValues completes the value of a setting that has a fixed set of values.
func completeValues(_ *cobra.Command, argv []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return edit.Values(argv[0]), cobra.ShellCompDirectiveNoFileComp
}

func unknownKey(err error) error {
	if _, ok := errors.AsType[*table.UnknownKeyError](err); !ok {
		return err
	}
	return &cli.UsageError{Err: err, Hint: "toolreg settings schema lists all settings"}
}

func newUnsetCommand(e *cli.Env) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a value from a settings file",
		Long: `Remove a value from your own settings file, or from the one that --scope names.
Comments, order and notation of the rest are kept. KEY is the same as for
"toolreg settings set". It is not an error if the value is not in the file.

Exit codes: 0, 1, 2 (no such setting, or the rest would be invalid without it), 5
(you said no, or inside a tool's run).`,
		Example: `  toolreg settings unset approvalMode
  toolreg settings unset --scope project mcpServers.files.timeout`,
		Args:              cli.ArgsBetween(1, 1, "a KEY"),
		ValidArgsFunction: complete.Arg(e.Complete().SettingKeys()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runUnset(cmd.Context(), e, scope, argv[0])
		},
	}
	settingsfile.ScopeFlag(cmd, &scope, "user", "")
	return cmd
}

func runUnset(ctx context.Context, e *cli.Env, scope, key string) error {
	paths, err := edit.Paths(key)
	if err != nil {
		return unknownKey(err)
	}
	removed := false
	changed, err := change(ctx, e, scope, key, func(file string, old []byte) ([]byte, error) {
		out, err := edit.Unset{Paths: paths}.Apply(file, old)
		removed = !bytes.Equal(old, out)
		return out, err
	})
	switch {
	case err != nil:
		return err
	case !removed:
		return reportChange(ctx, e, scope, changed, "%s is not set in %s")
	}
	return reportChange(ctx, e, scope, changed, "removed %s from %s")
}

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
		return e.IO.Report(changedDocument{File: file})
	}
	_, err = settingsfile.Edit(ctx, e, file, true, func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, old) {
			return nil, fmt.Errorf("%s was changed while you edited it; nothing was written", file)
		}
		return []byte(text), nil
	})
	if err != nil {
		return err
	}
	e.IO.Notef("wrote %s", file)
	if _, err := e.Config.Settings(ctx); err != nil { // problems outside the file, such as missing trust
		return err
	}
	return e.IO.Report(changedDocument{File: file})
}

// edited lets the person edit the text of a file and returns the result once it has no
// mistakes.
func edited(ctx context.Context, e *cli.Env, file, text string) (string, error) {
	tty, err := e.Person.Require(cli.NoTerminal("settings edit", "toolreg settings set KEY VALUE works without one"))
	if err != nil {
		return "", err
	}
	defer tty.Close()
	return settingsfile.EditText(ctx, tty, file, text, func(text string) error {
		return settingsfile.Check(ctx, e, file, nil, []byte(text))
	})
}
