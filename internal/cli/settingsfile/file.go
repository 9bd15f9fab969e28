package settingsfile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/trust"
	"github.com/toolreg/toolreg/internal/ui"
)

// ScopeFlag adds the flag --scope to a command that changes settings. more is
// appended to its description.
func ScopeFlag(cmd *cobra.Command, scope *string, value, more string) {
	cmd.Flags().StringVar(scope, "scope", value, "user, project, or a settings `file`"+more)
	complete.Flag(cmd, "scope",
		func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var out []cobra.Completion
			for _, scope := range []string{"user", "project"} {
				if strings.HasPrefix(scope, word) {
					out = append(out, scope)
				}
			}
			return out, cobra.ShellCompDirectiveDefault // or files
		})
}

// Path returns the settings file of a scope: the user's, the project's,
// or a named file. It need not exist.
func Path(e *cli.Env, scope string) (string, error) {
	root, err := e.Config.ProjectRoot() // also determines the working directory
	if err != nil {
		return "", err
	}
	dir := ""
	switch scope {
	case "user":
		if dir, err = e.Config.UserFolder(); err != nil {
			return "", err
		}
	case "project":
		dir = filepath.Join(root, ".toolreg")
	default:
		if !slices.Contains([]string{".yaml", ".yml", ".json", ".jsonc"}, strings.ToLower(filepath.Ext(scope))) {
			return "", cli.Usage(
				fmt.Sprintf("--scope %q is neither user nor project nor the name of a .yaml or .json file", scope), "")
		}
		return e.Config.Absolute(scope), nil
	}
	path, err := settings.FileIn(dir)
	path = cmp.Or(path, filepath.Join(dir, "settings.yaml"))
	return path, err
}

// Paths returns the settings files of a scope that can be changed, in descending precedence; those
// of all scopes if it is "".
func Paths(e *cli.Env, scope string) ([]string, error) {
	if scope != "" {
		path, err := Path(e, scope)
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
		path, err := Path(e, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// Edit reads a settings file, changes it and writes it with [Write]. Concurrent runs wait
// for each other. file is absolute; ask is that of [Change]. In change, old is nil if there is no
// file. It may be called again if the file has changed.
func Edit(ctx context.Context, e *cli.Env, file string, ask bool,
	change func(old []byte) ([]byte, error)) (granted bool, err error) {
	root, err := e.Config.ProjectRoot()
	if err != nil {
		return false, err
	}
	old, err := edit.Read(file)
	if err != nil {
		return false, err
	}
	text, err := change(old)
	if err != nil || bytes.Equal(old, text) {
		return false, err
	}
	within := "" // do not write outside the project
	if trust.Within(file, filepath.Join(root, ".toolreg")) {
		within = root
	}
	return Write(ctx, e, Change{File: file, Old: old, New: text, Ask: ask, Write: func() error {
		return inTurn(ctx, e, func() error { return edit.File(within, file, change) })
	}})
}

// Check reports the mistakes in the new content of a settings file, unless the old
// content has such mistakes too: first those of single entries, then those for
// which commands reject the whole file.
func Check(ctx context.Context, e *cli.Env, file string, old, data []byte) error {
	options, err := e.Config.Options()
	if err != nil {
		return err
	}
	entries := func(data []byte) error {
		_, err := layers.CheckFile(file, data)
		return err
	}
	whole := func(data []byte) error {
		set, _, err := settings.Load(options.Alone(file, data))
		if err != nil {
			return err
		}
		return e.Engine.CheckSettings(ctx, set)
	}
	for _, mistakes := range []func([]byte) error{entries, whole} {
		if err := mistakes(data); err != nil && mistakes(old) == nil {
			return err
		}
	}
	return nil
}

// inTurn calls write while it holds the lock for editing settings. Without a state folder
// there is no lock.
func inTurn(ctx context.Context, e *cli.Env, write func() error) (err error) {
	done := false
	if d, stateErr := e.Config.Folders.State(); stateErr == nil {
		lockErr := d.Update(ctx, "settings-edit", func([]byte) ([]byte, error) {
			err, done = write(), true
			return nil, nil
		})
		if cause := context.Cause(ctx); cause != nil && !done {
			return cause
		}
		e.IO.Log.Debug("lock for editing settings", "err", lockErr)
	}
	if !done {
		err = write()
	}
	return err
}

// WarnShadowed warns that another scope overrides the value that was written.
func WarnShadowed(ios *cli.IO, key string, by settings.Origin) {
	ios.Warn(registry.Warning("setting_shadowed", "", by.String()+" sets "+key+" too and takes precedence",
		"run toolreg settings path to see the precedence"))
}

// EditText opens the user's editor on a text until check accepts it. If the user gives
// up, the error is [registry.ErrDenied].
func EditText(ctx context.Context, tty *ui.TTY, name, text string, check func(text string) error) (string, error) {
	for {
		edited, err := tty.Edit(ctx, name, text)
		if err != nil {
			return "", err
		}
		mistake := check(edited)
		if mistake == nil {
			return edited, nil
		}
		again, err := cli.AskYes(ctx, tty,
			ui.Query{Text: "\n" + ui.Visible(mistake.Error()) + "\n\n", Question: "Edit it again?"})
		if err != nil {
			return "", err
		}
		if !again {
			return "", fmt.Errorf("%w: nothing was written: the text still has mistakes", registry.ErrDenied)
		}
		text = edited
	}
}
