package settingscmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
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
mcpServers.NAME.timeout. Lists take any number of VALUEs, objects take JSON. A
value of another type than the setting's is refused. At a terminal a change of
the project's settings is shown first, and a yes also grants trust in it.

Exit codes: 0, 1, 2 (no such setting, a value of another type), 5 (you said no,
or inside a tool's run).`,
		Example: `  toolreg settings set approvalMode plan
  toolreg settings set excludeTools web_fetch 'github__*'
  toolreg settings set --scope project mcpServers.files.timeout 30s`,
		Args:              cli.ArgsBetween(2, -1, "a KEY and a VALUE"),
		ValidArgsFunction: complete.Args(e.Complete().SettingKeys, completeValues),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return runSet(cmd.Context(), e, scope, argv[0], argv[1:])
		},
	}
	settingsfile.ScopeFlag(cmd, &scope, "user", "")
	return cmd
}

// changedDocument is the JSON of settings set and settings edit.
type changedDocument struct {
	Key  string `json:"key,omitempty"`
	File string `json:"file"`
}

func runSet(ctx context.Context, e *cli.Env, scope, key string, words []string) error {
	if err := e.RefuseInside("changing settings"); err != nil {
		return err
	}
	a, err := settings.Assign(key, words)
	if _, ok := errors.AsType[*settings.UnknownKeyError](err); ok {
		return unknownKey(err)
	}
	if err != nil {
		return err
	}
	file, err := settingsfile.Path(e, scope)
	if err != nil {
		return err
	}
	_, err = settingsfile.Edit(ctx, e, settingsfile.EditOptions{File: file, Change: func(old []byte) ([]byte, error) { return set(ctx, e, file, old, a) }})
	if err != nil {
		return err
	}
	if e.Globals.JSON {
		if err := e.PrintJSON(changedDocument{key, file}); err != nil {
			return err
		}
	} else {
		e.Notef("set %s in %s", key, file)
	}
	return reportSet(ctx, e, scope, key, file)
}

// set changes the content of a file. Mistakes that the file had before are
// accepted; new ones are an error.
func set(ctx context.Context, e *cli.Env, file string, old []byte, a settings.Assignment) ([]byte, error) {
	out, err := edit.Set{Paths: a.Paths, Value: a.Value}.Apply(file, old)
	if err != nil {
		return nil, err
	}
	if err := settingsfile.Check(ctx, e, file, old, out); err != nil {
		return nil, err
	}
	return out, nil
}

// reportSet reports what keeps a value from taking effect: missing trust, or a
// scope that overrides it.
func reportSet(ctx context.Context, e *cli.Env, scope, key, file string) error {
	s, diags, err := e.LoadSettings(ctx)
	if err != nil {
		return err
	}
	if scope == "project" {
		e.Diagnose(diags)
	}
	values, err := s.Find(key)
	if err != nil || len(values) != 1 {
		return nil // a part of a value, which has no effective value of its own
	}
	place, known := map[string]settings.Scope{"user": settings.ScopeUser, "project": settings.ScopeProject}[scope]
	if o := values[0].Origin; known && o.Scope > place && o.Name != file {
		settingsfile.WarnShadowed(e, key, o)
	}
	return nil
}

// completeValues completes the values of a setting that has only a few.
func completeValues(_ *cobra.Command, argv []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return settings.Values(argv[0]), cobra.ShellCompDirectiveNoFileComp
}
