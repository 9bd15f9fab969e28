// Package settingsfile changes settings files for the person who runs the program: it
// shows the change, asks if that is required, writes it and grants trust in what was
// shown.
package settingsfile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
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
