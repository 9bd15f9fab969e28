package serverscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// describedOptions are the options of add for a server of a registry or a file.
type describedOptions struct {
	as, runtime string
	set         []string // NAME=VALUE
}

// addDescribed adds a server of a registry or of a file.
func addDescribed(ctx context.Context, e *cli.Env, t *target, o *describedOptions, arg string) error {
	given, err := parseGiven(o.set)
	if err != nil {
		return err
	}
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	i := installer(e, s)
	d, err := i.Find(ctx, arg)
	if err != nil {
		return err
	}
	defer d.Close()
	name := cmp.Or(o.as, d.Server.Short())
	if err := table.CheckServerName(name); err != nil {
		return &cli.UsageError{Err: err, Hint: "give another name with --as"}
	}
	file, err := settingsfile.Path(e, t.scope)
	if err != nil {
		return err
	}
	if err := isFree(file, name); err != nil {
		return err
	}
	in, err := i.New(d, file, name, given)
	if err != nil {
		return err
	}
	q := &questions{Installation: in, verb: "adding"}
	if err := q.choose(ctx, e, o.runtime); err != nil {
		return err
	}
	if err := q.confirm(ctx, e, q.about(true), "Add it?"); err != nil {
		return err
	}
	if err := writeInstalled(ctx, e, t, s, in); err != nil {
		return err
	}
	return i.Remember(ctx, d)
}

// isFree returns an error if a settings file already has an entry of a name.
func isFree(file, name string) error {
	data, err := edit.Read(file)
	if err != nil {
		return err
	}
	switch _, err := edit.Entry(file, data, name); {
	case err == nil:
		return &cli.UsageError{
			Err:  fmt.Errorf("server %q %w in %s", name, edit.ErrServerExists, file),
			Hint: "give another name with --as, or run toolreg servers upgrade " + cli.Quote(name),
		}
	case !errors.Is(err, edit.ErrNoServer):
		return err
	}
	return nil
}

// parseGiven reads the values of --set.
func parseGiven(set []string) (serverjson.Given, error) {
	given := serverjson.Given{}
	for _, text := range set {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, &cli.UsageError{Err: errors.New("--set takes NAME=VALUE")}
		}
		given[name] = append(given[name], value)
	}
	return given, nil
}

// writeInstalled stores the secrets and writes the entry.
func writeInstalled(ctx context.Context, e *cli.Env, t *target, s *settings.Settings, in *install.Installation) error {
	entry, err := in.Entry()
	if err != nil {
		return err
	}
	undo, err := in.Store()
	if err != nil {
		return err
	}
	all := additions{edit.Change{Name: in.Name, Entry: entry}}
	c := change{
		action: "added", names: []string{in.Name}, files: []string{in.File}, apply: all.apply,
		test: !t.noTest && !e.Config.Globals.Cached, runs: runsLine(in.Plan),
	}
	err = c.run(ctx, e, s)
	if isFree(in.File, in.Name) == nil { // it was not written
		err = errors.Join(err, undo())
	}
	return err
}
