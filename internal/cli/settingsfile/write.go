// Package settingsfile changes settings files for the person who runs the program: it
// shows the change, asks if that is required, writes it and grants trust in what was
// shown.
package settingsfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/trust"
	"github.com/toolreg/toolreg/internal/ui"
)

// Change is a change that a command makes to a settings file for the person who
// runs it.
type Change struct {
	File     string       // absolute
	Old, New []byte       // content before and after; Old is nil if there is no file yet
	Ask      bool         // show the change and ask, regardless of the file
	Write    func() error // writes New; afterwards trust is granted if the file is New
}

// Write writes a settings file. If it is the project's and a person is at the terminal,
// Write shows the change, with everything it would allow that is not granted yet, and
// asks. After a yes it writes the file and grants trust; after a no it writes nothing and
// returns [registry.ErrDenied]. In all other cases it writes the file and grants nothing.
// The settings are read again when next used.
func Write(ctx context.Context, e *cli.Env, w Change) (granted bool, err error) {
	before, err := project(ctx, e.Config)
	if err != nil {
		return false, err
	}
	shown, err := proposed(e, w)
	if err != nil {
		return false, err
	}
	if shown != nil || w.Ask {
		if err := askToWrite(ctx, e.Person, w, before, shown); err != nil {
			return false, err
		}
	}
	if err := w.Write(); err != nil {
		return false, err
	}
	e.Config.Forget()
	if shown == nil {
		return false, nil
	}
	return true, grantShown(ctx, e, shown)
}

// project returns the project in its current state; nil if it has no settings
// or if mistakes, which the change may correct, prevent reading them.
func project(ctx context.Context, config *cli.Config) (*settings.Project, error) {
	s, _, err := config.Load(ctx)
	if _, ok := errors.AsType[*document.Error](err); ok {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.Project, nil
}

// proposed returns the project as the change would make it; nil if trust in it
// is not part of the question.
func proposed(e *cli.Env, w Change) (*settings.Project, error) {
	root, err := e.Config.ProjectRoot()
	if err != nil || !e.Person.AtKeyboard() || !isProjectFile(root, w.File) {
		return nil, err
	}
	options, err := e.Config.Options()
	if err != nil {
		return nil, err
	}
	options.Proposed = &settings.Proposed{Path: w.File, Data: w.New}
	after, _, err := settings.Load(options)
	if err != nil {
		return nil, err
	}
	if p := after.Project; p != nil && p.Obstacle == "" {
		return p, nil
	}
	return nil, nil
}

// isProjectFile reports whether a file is, or would be, the settings file of
// the project at root.
func isProjectFile(root, file string) bool {
	dir, name := filepath.Split(file)
	if filepath.Clean(dir) != filepath.Join(root, ".toolreg") {
		return false
	}
	there, err := settings.FileIn(filepath.Clean(dir))
	return err == nil && (there == file ||
		there == "" && slices.Contains([]string{"settings.yaml", "settings.yml", "settings.json"}, name))
}

// askToWrite shows a change and asks. nil means yes. after is nil if trust is
// not part of the question.
func askToWrite(ctx context.Context, person *cli.Person, w Change, before, after *settings.Project) error {
	tty, err := person.OpenTTY()
	if err != nil {
		return err
	}
	defer tty.Close()
	return cli.AskToWrite(ctx, tty, writeQuestion(tty, w, before, after))
}

// writeQuestion returns the question that shows a change and what it would allow that is
// not granted yet.
func writeQuestion(tty *ui.TTY, w Change, before, after *settings.Project) ui.Query {
	columns, _ := tty.Size()
	file := ui.Line(w.File)
	name, question, trusted := file, "Write it?", ""
	if after != nil {
		fresh := notGranted(w.File, before, after)
		name, question = ui.Line(trust.Name(after.Root, w.File)), "Write it and trust this project?"
		if trusted = cli.DescribeProject(fresh, columns, tty.Color); trusted != "" {
			trusted = "Trusting this project also allows:\n" + trusted
		}
	}
	diff := udiff.Unified(name, name, string(w.Old), string(w.New))
	added, removed := ui.DiffCounts(diff)
	verb := "changes"
	if w.Old == nil {
		verb = "creates"
	}
	return ui.Query{
		Text:     fmt.Sprintf("\nThis %s %s:\n%s%s\n", verb, file, ui.DiffText(diff, columns, tty.Color), trusted),
		About:    fmt.Sprintf("Write %s: +%d -%d\n", file, added, removed),
		Question: question,
	}
}

// notGranted returns what trust in the changed project would cover beyond the current
// grant, except the file that is shown.
func notGranted(file string, before, after *settings.Project) *settings.Project {
	isFile := func(path string) bool { return path == trust.Proposed(file, nil).Path }
	isChange := func(c trust.Change) bool { return c.Name == trust.Name(after.Root, file) }
	fresh := *after
	fresh.Files = slices.DeleteFunc(slices.Clone(after.Files), isFile)
	if before == nil {
		return &fresh
	}
	if !slices.ContainsFunc(before.Changes, isChange) { // the only change is the one that is shown
		fresh.Changes = slices.DeleteFunc(slices.Clone(after.Changes), isChange)
	}
	if before.Trusted && !before.Granted.IsZero() && len(before.Changes) == 0 {
		// A flag grants trust for one run, and possibly without imports.
		fresh.Files = slices.DeleteFunc(slices.Clone(fresh.Files),
			func(file string) bool { return slices.Contains(before.Files, file) })
		fresh.Runs, fresh.Loosens, fresh.Expands = withoutPlaces(after.Runs, before.Runs), withoutPlaces(after.Loosens,
			before.Loosens), withoutPlaces(after.Expands, before.Expands)
	}
	return &fresh
}

// withoutPlaces is like without, but ignores the prefix "file:line: " of elements,
// because a change moves other lines.
func withoutPlaces(list, known []string) []string {
	behind := func(s string) string { _, rest, _ := strings.Cut(s, ": "); return rest }
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		return slices.ContainsFunc(known, func(k string) bool { return behind(k) == behind(s) })
	})
}

// grantShown grants trust in the project if it is still what was shown.
func grantShown(ctx context.Context, e *cli.Env, shown *settings.Project) error {
	now, _, err := e.Config.Load(ctx)
	if err != nil {
		return err
	}
	if now.Project == nil || now.Project.Hash != shown.Hash {
		return errors.New(
			"written, but not trusted: a file of the project changed in the meantime; see toolreg trust grant")
	}
	err = e.Trust.Grant(ctx, now.Project)
	e.Config.Forget()
	return err
}

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
		if !IsNamed(scope) {
			return "", cli.Usage(
				fmt.Sprintf("--scope %q is neither user nor project nor the name of a .yaml or .json file", scope), "")
		}
		return e.Config.Absolute(scope), nil
	}
	path, err := settings.FileIn(dir)
	path = cmp.Or(path, filepath.Join(dir, "settings.yaml"))
	return path, err
}

// IsNamed reports whether a file has the name of one that can be changed as settings.
func IsNamed(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".jsonc"}, strings.ToLower(filepath.Ext(file)))
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

// inTurn calls write while it holds the lock on settings edits. Without a state folder there is no
// lock.
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
