package serverscmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/settings/folders"
)

// whereFound describes the default of --scope for commands that find a server's
// file.
const whereFound = "; default the one that has the server"

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
		flag(&cobra.Command{Use: "remove NAME", Example: "  toolreg servers remove github", Short: "Remove a server from the settings", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: complete.Arg(e.Complete().Servers), Long: editHelp("Remove a server from the settings file that has it."),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "removed", edit.Change{Name: argv[0], Drop: true})
			}}),
		flag(&cobra.Command{Use: "enable NAME", Example: "  toolreg servers enable github", Short: "Enable a disabled server", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: complete.Arg(e.Complete().Servers), Long: editHelp("Enable a server by setting disabled to false."),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "enabled", edit.Change{Name: argv[0], Off: &on})
			}}),
		flag(&cobra.Command{Use: "disable NAME", Example: "  toolreg servers disable github --scope user", Short: "Disable a server without removing it", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: complete.Arg(e.Complete().Servers), Long: editHelp("Disable a server by setting disabled to true."),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "disabled", edit.Change{Name: argv[0], Off: &off})
			}}),
	}
}

// editHelp returns the help of a command that changes a settings file.
func editHelp(what string) string {
	return what + `

The file's comments, order and notation are kept. A project whose settings change
has to be trusted again.

Exit codes: 0, 1, 2, 3 (no such server), 5 (inside a tool's run).`
}

// editedServer is the JSON of the commands that change a server.
type editedServer struct {
	Name   string `json:"name"`
	Action string `json:"action"` // added, edited, removed, enabled, disabled
	File   string `json:"file"`
	Test   *trial `json:"test,omitempty"` // for an added server: the result of connecting to it
}

func runEdit(ctx context.Context, e *cli.Env, scope, action string, change edit.Change) error {
	if err := e.RefuseInside("changing settings"); err != nil {
		return err
	}
	s, err := e.Settings(ctx)
	if err != nil {
		return err
	}
	files, err := editable(e, scope)
	if err != nil {
		return err
	}
	file, granted, err := editFirst(ctx, e, files, change)
	if errors.Is(err, edit.ErrNoServer) {
		return noServerToEdit(s, change.Name)
	}
	if err != nil {
		return err
	}
	reportEdit(e, s, file, action, change)
	warnUntrusted(e, s, file, granted)
	if e.Globals.JSON {
		return e.PrintJSON(editedServer{Name: change.Name, Action: action, File: file})
	}
	return nil
}

// editable returns the settings files of a scope, in descending precedence.
func editable(e *cli.Env, scope string) ([]string, error) {
	if scope != "" {
		path, err := settingsfile.Path(e, scope)
		return []string{path}, err
	}
	var out []string
	for _, f := range slices.Backward(e.Globals.Files) {
		if !e.IsPiped(f) {
			out = append(out, e.Absolute(f))
		}
	}
	for _, scope := range []string{"project", "user"} {
		if scope == "user" && folders.User(e.Environ) == "" {
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

// editFirst makes the change in the first file where it is possible, and
// returns that file; granted says that the project is trusted with the change.
func editFirst(ctx context.Context, e *cli.Env, files []string, change edit.Change) (file string, granted bool, err error) {
	err = edit.ErrNoServer
	for _, file = range files {
		granted, err = settingsfile.Edit(ctx, e, settingsfile.EditOptions{File: file, Change: func(old []byte) ([]byte, error) { return change.Apply(file, old) }})
		if !errors.Is(err, edit.ErrNoServer) {
			break
		}
	}
	return file, granted, err
}

// noServerToEdit says where a server comes from if none of the files has it.
func noServerToEdit(s *settings.Settings, name string) error {
	names := []string{}
	for _, server := range s.Servers {
		if server.Name == name {
			return &cli.UsageError{Err: fmt.Errorf("server %q is defined at %s, which this command cannot change", name, server.Origin), Hint: "change it there, or name the file with --scope"}
		}
		names = append(names, server.Name)
	}
	return &session.NoServerError{Name: name, Known: names}
}

// reportEdit reports what was changed, and whether another scope has the server
// too.
func reportEdit(e *cli.Env, s *settings.Settings, file, action string, change edit.Change) {
	if !e.Globals.JSON {
		e.Notef("%s server %q in %s", action, change.Name, file)
	}
	for _, server := range s.Servers {
		if change.Entry != nil && server.Name == change.Name {
			e.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "server_shadowed",
				Message: fmt.Sprintf("%q is also the name of a server at %s; the one with higher precedence is used", change.Name, server.Origin), Hint: "run toolreg settings path to see the precedence"})
		}
	}
}

// warnUntrusted warns that the project's own settings are ignored in their
// current state.
func warnUntrusted(e *cli.Env, s *settings.Settings, file string, granted bool) {
	if file != projectFile(s) || granted {
		return
	}
	message := "the server is ignored until you trust the settings of this project"
	if s.Project != nil && s.Project.Trusted {
		message = "the settings of this project have changed, so they are ignored until you trust them again"
	}
	e.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: settings.CodeProjectUntrusted, Message: message, Hint: "toolreg trust grant"})
}

// projectFile returns the settings file of the project; "" if there is none.
func projectFile(s *settings.Settings) string {
	path, err := settings.FileIn(filepath.Join(s.ProjectRoot, ".toolreg"))
	if err != nil {
		return ""
	}
	return path
}
