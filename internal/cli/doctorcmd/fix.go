package doctorcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/ui"
)

// offer asks about each fix and runs those that the person wants. It reports
// whether any was run.
func (x *examination) offer(ctx context.Context) (ran bool, err error) {
	tty, err := x.env.Person.Require(&cli.NoTerminalError{What: "doctor --fix", Instead: "run the commands that toolreg doctor names"})
	if err != nil {
		return false, err
	}
	defer tty.Close()
	var offered []string
	for _, f := range x.findings {
		if len(f.Fix) == 0 || slices.Contains(offered, f.Fix.String()) {
			continue
		}
		offered = append(offered, f.Fix.String())
		yes, err := cli.AskYes(ctx, tty, ui.Query{
			About:    fmt.Sprintf("\n%s: %s\n", ui.Line(f.Subject), cli.Indent(ui.Visible(f.Message))),
			Question: "Run " + ui.Line(f.Fix.String()) + "?",
		})
		if err != nil && !errors.Is(err, ui.ErrNoAnswer) {
			return ran, err
		}
		if !yes {
			continue
		}
		ran = true
		for _, argv := range f.Fix {
			if !x.env.RunCommand(ctx, argv...) {
				break
			}
		}
		if cause := context.Cause(ctx); cause != nil {
			return ran, cause
		}
	}
	return ran, nil
}

// fixFor returns the fix for a failed server or API, which is to disable it. The names of a project's servers are
// untrusted and must not be taken for flags.
func (x *examination) fixFor(set *settings.Settings, source string) fix {
	name, ok := registry.ServerOf(source)
	i := slices.IndexFunc(set.Entries(), func(s settings.Server) bool { return ok && s.Name == name && x.isOurs(s.Origin) })
	if i < 0 {
		return nil
	}
	return fix{{"servers", "disable", "--", name}}
}

// isOurs reports whether a value is in a file that toolreg's commands can change, not in
// a file of another program.
func (x *examination) isOurs(o settings.Origin) bool {
	for _, scope := range []string{"user", "project"} {
		if file, err := settingsfile.Path(x.env, scope); err == nil && file == o.Name {
			return true
		}
	}
	return slices.ContainsFunc(x.env.Config.Globals.Files, func(f string) bool { return !x.env.Config.IsPiped(f) && x.env.Config.Absolute(f) == o.Name })
}

// fixFile returns the fix that edits a file with mistakes; nil if file is not the path of
// a settings file.
func fixFile(file string) fix {
	if ext := filepath.Ext(file); filepath.IsAbs(file) && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
		return fix{{"settings", "edit", "--scope", file}}
	}
	return nil
}
