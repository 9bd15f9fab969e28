package serverscmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/toolscan"
)

// change is a change to servers in a settings file. Each command that changes servers
// creates one, and run does the rest for all of them.
type change struct {
	action string   // the action in the JSON, see editedServer
	names  []string // names of the servers; if empty, nothing is changed
	files  []string // the first file in which the change is possible is changed
	apply  func(file string, old []byte) ([]byte, error)
	ask    bool // show the change and ask, regardless of the file
	test   bool // connect to the servers afterwards
	list   bool // the JSON output is a list

	part bool // the caller prints the JSON

	runs string // of the JSON, see editedServer
}

const actionRemoved = "removed"

// editedServer is the JSON of the commands that change a server.
type editedServer struct {
	Name   string `json:"name"`
	Action string `json:"action"` // added, edited, removed, enabled, disabled
	File   string `json:"file"`
	Runs   string `json:"runs,omitempty"` // for a server of a registry or a bundle: its command or address
	Test   *trial `json:"test,omitempty"` // for an added server: the result of connecting to it

	// Findings are what an added server says to steer a model; see servers check.
	Findings []toolscan.Finding `json:"findings,omitempty"`
	// Disabled says that an added server was disabled because of a finding of severity high.
	Disabled bool `json:"disabled,omitempty"`
}

// run writes the change, after showing it and asking if that is required, reports it, and
// connects to the servers. s holds the settings before the change; nil if the command
// does not read them.
func (c change) run(ctx context.Context, e *cli.Env, s *settings.Settings) error {
	file, granted, err := c.write(ctx, e)
	switch {
	case errors.Is(err, edit.ErrServerExists):
		return &cli.UsageError{Err: err, Hint: "choose another name, or change it with toolreg servers edit"}
	case errors.Is(err, edit.ErrNoServer) && s != nil:
		return noServerToEdit(s, c.names[0])
	case err != nil:
		return err
	}
	changed := make([]editedServer, len(c.names))
	for i, name := range c.names {
		changed[i] = editedServer{Name: name, Action: c.action, File: file, Runs: c.runs}
		e.IO.Notef("%s server %q in %s", c.action, name, file)
		if c.action == "added" {
			warnShadowed(e.IO, s, name)
		}
		if c.action == actionRemoved {
			if err := e.Config.Folders.ForgetServer(ctx, name, file); err != nil {
				return fmt.Errorf("forgetting the names of the tools of server %q: %w", name, err)
			}
			if err := install.ForgetSecrets(e.Config.Folders, file, name); err != nil {
				return fmt.Errorf("removing the secrets of server %q: %w", name, err)
			}
			noteBundle(e, s, name)
		}
	}
	if s != nil && len(changed) > 0 {
		warnUntrusted(e.IO, s, file, granted)
	}
	if c.test && len(changed) > 0 {
		if err := tryAdded(ctx, e, file, changed); err != nil {
			return err
		}
		if err := disableSuspicious(ctx, e, file, changed); err != nil {
			return err
		}
	}
	if err := c.print(e.IO, changed); err != nil {
		return err
	}
	if slices.ContainsFunc(changed, func(a editedServer) bool { return a.Disabled }) {
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	return nil
}

func (c change) print(ios *cli.IO, changed []editedServer) error {
	switch {
	case !ios.JSON || c.part:
		return nil
	case c.list:
		return ios.PrintJSON(map[string][]editedServer{"servers": changed})
	}
	return ios.PrintJSON(changed[0])
}

// write makes the change in the first file where it is possible, and returns that file.
// granted reports whether trust in the changed project was granted.
func (c change) write(ctx context.Context, e *cli.Env) (file string, granted bool, err error) {
	if len(c.names) == 0 {
		return "", false, nil
	}
	for _, file = range c.files {
		granted, err = settingsfile.Edit(ctx, e,
			settingsfile.EditOptions{File: file, Ask: c.ask,
				Change: func(old []byte) ([]byte, error) { return c.apply(file, old) }})
		if !errors.Is(err, edit.ErrNoServer) {
			break
		}
	}
	return file, granted, err
}

// beforeChange returns the settings before a change. It returns an error inside a tool's
// run, where changes are not allowed.
func beforeChange(ctx context.Context, config *cli.Config) (*settings.Settings, error) {
	if err := config.RefuseInside("changing settings"); err != nil {
		return nil, err
	}
	return config.Settings(ctx)
}

// noServerToEdit returns the error for a server that is in none of the files, which says
// where the server comes from.
func noServerToEdit(s *settings.Settings, name string) error {
	server := s.Entry(name)
	if server == nil {
		return &sources.NoServerError{Name: name, Known: s.EntryNames()}
	}
	return &cli.UsageError{
		Err:  fmt.Errorf("server %q is defined at %s, which this command cannot change", name, server.Origin),
		Hint: "change it there, or name the file with --scope",
	}
}

// warnShadowed warns that another scope has a server with the name that was added.
func warnShadowed(ios *cli.IO, s *settings.Settings, name string) {
	if server := s.Entry(name); server != nil {
		ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "server_shadowed",
			Message: fmt.Sprintf("%q is also the name of a server at %s; the one with higher precedence is used",
				name, server.Origin),
			Hint: "run toolreg settings path to see the precedence"})
	}
}

// warnUntrusted warns that the project's own settings are ignored in their
// current state.
func warnUntrusted(ios *cli.IO, s *settings.Settings, file string, granted bool) {
	if ours, _ := settings.FileIn(filepath.Join(s.ProjectRoot, ".toolreg")); file != ours || granted {
		return
	}
	message := "the server is ignored until you trust the settings of this project"
	if s.Project != nil && s.Project.Trusted {
		message = "the settings of this project have changed, so they are ignored until you trust them again"
	}
	ios.Warn(registry.Warning(settings.CodeProjectUntrusted, "", message, "toolreg trust grant"))
}
