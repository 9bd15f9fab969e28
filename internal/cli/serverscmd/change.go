package serverscmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
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

// actionRemoved is the action of servers remove.
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
	if file != projectFile(s) || granted {
		return
	}
	message := "the server is ignored until you trust the settings of this project"
	if s.Project != nil && s.Project.Trusted {
		message = "the settings of this project have changed, so they are ignored until you trust them again"
	}
	ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning,
		Code: settings.CodeProjectUntrusted, Message: message, Hint: "toolreg trust grant"})
}

// projectFile returns the settings file of the project; "" if there is none.
func projectFile(s *settings.Settings) string {
	path, err := settings.FileIn(filepath.Join(s.ProjectRoot, ".toolreg"))
	if err != nil {
		return ""
	}
	return path
}

// noteBundle says where the bundle is that a server had. It stays, because a server of
// another project may be the same.
func noteBundle(e *cli.Env, s *settings.Settings, name string) {
	if folder := installer(e, s).BundleFolder(name); folder != "" {
		e.IO.Notef("its bundle stays in %s; delete it if no other project uses it", folder)
	}
}

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
		ValidArgsFunction: complete.Arg(e.Complete().Servers),
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
	tty, err := e.Person.Require(&cli.NoTerminalError{
		What:    "servers edit",
		Instead: "toolreg settings set " + edit.Setting(file, data, name) + ".FIELD VALUE works without one",
	})
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
	files, err := editable(e, scope)
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

// editCommands returns the subcommands of servers that change a settings file.
func editCommands(e *cli.Env) []*cobra.Command {
	scope := ""
	flag := func(cmd *cobra.Command) *cobra.Command {
		settingsfile.ScopeFlag(cmd, &scope, "", whereFound)
		return cmd
	}
	on, off := false, true
	return []*cobra.Command{
		newAddCommand(e), newAddJSONCommand(e), newImportCommand(e), newEditCommand(e),
		flag(&cobra.Command{
			Use: "remove NAME", Example: "  toolreg servers remove github",
			Short:             "Remove a server or an API from the settings",
			Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
			ValidArgsFunction: complete.Arg(e.Complete().Servers),
			Long: editHelp("Remove a server from the settings file that contains it.",
				editCodes),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, actionRemoved, edit.Change{Name: argv[0], Drop: true})
			},
		}),
		flag(&cobra.Command{
			Use: "enable NAME", Example: "  toolreg servers enable github",
			Short: "Enable a disabled server", Args: cli.ArgsBetween(1, 1, "the NAME of a server"),
			ValidArgsFunction: complete.Arg(e.Complete().Servers),
			Long:              editHelp("Enable a server by removing disabled from its entry.", editCodes),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "enabled", edit.Change{Name: argv[0], Off: &on})
			},
		}),
		flag(&cobra.Command{
			Use: "disable NAME", Example: "  toolreg servers disable github --scope user",
			Short:             "Disable a server without removing it",
			Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
			ValidArgsFunction: complete.Arg(e.Complete().Servers),
			Long:              editHelp("Disable a server by setting disabled to true.", editCodes),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "disabled", edit.Change{Name: argv[0], Off: &off})
			},
		}),
	}
}

// editHelp returns the help of a command that changes a settings file.
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

func runEdit(ctx context.Context, e *cli.Env, scope, action string, entry edit.Change) error {
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	files, err := editable(e, scope)
	if err != nil {
		return err
	}
	return change{action: action, names: []string{entry.Name}, files: files, apply: entry.Apply}.run(ctx, e, s)
}

// editable returns the settings files of a scope, in descending precedence.
func editable(e *cli.Env, scope string) ([]string, error) {
	if scope != "" {
		path, err := settingsfile.Path(e, scope)
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
		path, err := settingsfile.Path(e, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}
