package serverscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/terminal"
)

// editCommands are the subcommands of servers that change a settings file.
func editCommands(e *cli.Env) []*cobra.Command {
	scope := ""
	flag := func(cmd *cobra.Command, text string) *cobra.Command {
		cmd.Flags().StringVar(&scope, "scope", "", text)
		cli.CompleteFlag(cmd, "scope", completeScopes)
		return cmd
	}
	const found = "user, project, or a settings `file`; default the one that has the server"
	on, off := false, true
	return []*cobra.Command{
		newAddCommand(e),
		flag(&cobra.Command{Use: "remove NAME", Short: "Remove a server from the settings", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: cli.CompleteArg(e.CompleteServers), Long: editHelp("Remove a server from the settings file that has it."),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "removed", edit.Change{Name: argv[0], Drop: true})
			}}, found),
		flag(&cobra.Command{Use: "enable NAME", Short: "Use a server that was disabled", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: cli.CompleteArg(e.CompleteServers), Long: editHelp("Use a server again: its disabled becomes false."),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "enabled", edit.Change{Name: argv[0], Off: &on})
			}}, found),
		flag(&cobra.Command{Use: "disable NAME", Short: "Leave a server out without removing it", Args: cli.ArgsBetween(1, 1, "the NAME of a server"), ValidArgsFunction: cli.CompleteArg(e.CompleteServers), Long: editHelp("Leave a server out: its disabled becomes true."),
			RunE: func(cmd *cobra.Command, argv []string) error {
				return runEdit(cmd.Context(), e, scope, "disabled", edit.Change{Name: argv[0], Off: &off})
			}}, found),
	}
}

// completeScopes completes the words for settings files, else the files.
func completeScopes(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, scope := range []string{"user", "project"} {
		if strings.HasPrefix(scope, word) {
			out = append(out, scope)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

func editHelp(what string) string {
	return what + ` Comments, order and the
way things are written stay. A project whose settings change has to be trusted
again.

Exit codes: 0, 1, 2, 3 (no such server), 5 (inside a tool's run).`
}

type addOptions struct {
	scope, url, kind, cwd, description string
	headers, env                       []string
	trust                              bool
}

func newAddCommand(e *cli.Env) *cobra.Command {
	o := &addOptions{}
	cmd := &cobra.Command{
		Use:   "add NAME [--url URL | -- COMMAND…]",
		Short: "Add an MCP server to the settings",
		Long: editHelp("Add an MCP server to a settings file, the user's own by default.") + `

A secret is better named than given: --env TOKEN=env:GITHUB_TOKEN and
--header 'Authorization=Bearer ${TOKEN}' keep it out of the file.`,
		Example: `  toolreg servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  toolreg servers add github --url https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'`,
		RunE: func(cmd *cobra.Command, argv []string) error {
			change, err := o.change(argv, cmd.ArgsLenAtDash())
			if err != nil {
				return &cli.UsageError{Err: err, Hint: "see toolreg servers add --help"}
			}
			return runEdit(cmd.Context(), e, cmp.Or(o.scope, "user"), "added", change)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.scope, "scope", "user", "user, project, or a settings `file`")
	f.StringVar(&o.url, "url", "", "address of a server that runs already")
	f.StringVar(&o.kind, "type", "", "stdio, http or sse; default by --url or COMMAND")
	f.StringArrayVar(&o.headers, "header", nil, "`K=V` sent with each request (repeatable)")
	f.StringArrayVar(&o.env, "env", nil, "`K=V` in the server's environment (repeatable)")
	f.StringVar(&o.cwd, "cwd", "", "`dir` in which the server runs, relative to the project root")
	f.StringVar(&o.description, "description", "", "what the server is for")
	f.BoolVar(&o.trust, "trust", false, "do not ask about calls to its tools")
	cli.CompleteFlag(cmd, "scope", completeScopes)
	cli.CompleteFlag(cmd, "type", cli.CompleteWords("stdio", "http", "sse"))
	cli.CompleteFlag(cmd, "cwd", cli.CompleteDirs)
	return cmd
}

// change turns the command line into an entry. dash is the number of arguments
// before --, -1 without one.
func (o *addOptions) change(argv []string, dash int) (edit.Change, error) {
	if dash < 0 {
		dash = len(argv)
	}
	before, command := argv[:dash], argv[dash:]
	switch {
	case len(before) == 0 || before[0] == "":
		return edit.Change{}, errors.New("a NAME is missing")
	case strings.ContainsFunc(before[0], isNoNameRune):
		return edit.Change{}, fmt.Errorf("%q cannot be the name of a server: letters, digits, _ . and - are for names", before[0])
	case len(before) > 1:
		return edit.Change{}, fmt.Errorf("unexpected argument %q; put -- before the command", before[1])
	case len(command) == 0 && o.url == "":
		return edit.Change{}, errors.New("how to reach the server is missing: --url URL, or -- COMMAND")
	case len(command) > 0 && o.url != "":
		return edit.Change{}, errors.New("--url and a command exclude each other")
	case len(command) > 0 && len(o.headers) > 0:
		return edit.Change{}, errors.New("--header is for servers with a --url")
	case len(command) == 0 && (len(o.env) > 0 || o.cwd != ""):
		return edit.Change{}, errors.New("--env and --cwd are for servers with a command")
	}
	entry := serverEntry{Type: o.kind, URL: o.url, Cwd: o.cwd, Description: o.description, Trust: o.trust}
	if len(command) > 0 {
		entry.Command, entry.Args = command[0], command[1:]
	}
	var err error
	if entry.Env, err = pairsObject("--env", o.env); err != nil {
		return edit.Change{}, err
	}
	if entry.Headers, err = pairsObject("--header", o.headers); err != nil {
		return edit.Change{}, err
	}
	data, err := encodeEntry(entry)
	return edit.Change{Name: before[0], Entry: data}, err
}

// isNoNameRune reports whether a character cannot stand in the name of a server.
func isNoNameRune(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", r)
}

// serverEntry is an entry of mcpServers in the order in which it is written.
type serverEntry struct {
	Type        string          `json:"type,omitempty"`
	Command     string          `json:"command,omitempty"`
	Args        []string        `json:"args,omitempty"`
	URL         string          `json:"url,omitempty"`
	Env         json.RawMessage `json:"env,omitempty"`
	Headers     json.RawMessage `json:"headers,omitempty"`
	Cwd         string          `json:"cwd,omitempty"`
	Description string          `json:"description,omitempty"`
	Trust       bool            `json:"trust,omitempty"`
}

func encodeEntry(e serverEntry) (json.RawMessage, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return json.RawMessage(strings.TrimSpace(b.String())), err
}

// pairsObject makes an object of K=V in their order; nil of none. Errors never
// hold a value.
func pairsObject(flag string, given []string) (json.RawMessage, error) {
	if len(given) == 0 {
		return nil, nil
	}
	var parts, names []string
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s wants K=V", flag)
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("%s gives %s twice", flag, name)
		}
		names = append(names, name)
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(key)+":"+string(text))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}"), nil
}

// editedServer is the JSON of the commands that change a server.
type editedServer struct {
	Name   string `json:"name"`
	Action string `json:"action"` // added, removed, enabled, disabled
	File   string `json:"file"`
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
	if errors.Is(err, edit.ErrServerExists) {
		return &cli.UsageError{Err: err, Hint: "toolreg servers remove " + change.Name + ", or choose another name"}
	}
	if err != nil {
		return err
	}
	reportEdit(e, s, file, action, change, granted)
	if e.Globals.JSON {
		return e.PrintJSON(editedServer{change.Name, action, file})
	}
	return nil
}

// editable are the settings files that a scope stands for, those that count
// most first.
func editable(e *cli.Env, scope string) ([]string, error) {
	if scope != "" {
		path, err := e.SettingsFile(scope)
		return []string{path}, err
	}
	var out []string
	for _, f := range slices.Backward(e.Globals.Files) {
		if !e.IsPiped(f) {
			out = append(out, e.Absolute(f))
		}
	}
	for _, scope := range []string{"project", "user"} {
		if scope == "user" && settings.UserDir(e.Environ) == "" {
			continue
		}
		path, err := e.SettingsFile(scope)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// editFirst makes the change in the first file where it is possible, which is the
// one that it returns; granted tells that the project is trusted with it.
func editFirst(ctx context.Context, e *cli.Env, files []string, change edit.Change) (file string, granted bool, err error) {
	err = edit.ErrNoServer
	for _, file = range files {
		granted, err = e.EditSettings(ctx, cli.SettingsEdit{File: file, Change: func(old []byte) ([]byte, error) { return change.Apply(file, old) }})
		if !errors.Is(err, edit.ErrNoServer) {
			break
		}
	}
	return file, granted, err
}

// noServerToEdit says where a server comes from that no file to edit has.
func noServerToEdit(s *settings.Settings, name string) error {
	names := []string{}
	for _, server := range s.Servers {
		if server.Name == name {
			return &cli.UsageError{Err: fmt.Errorf("server %q is set at %s, which is not changed from here", name, server.Origin), Hint: "change it there, or name the file with --scope"}
		}
		names = append(names, server.Name)
	}
	return &session.NoServerError{Name: name, Known: names}
}

// reportEdit says what was changed, and what it means for trust and precedence.
func reportEdit(e *cli.Env, s *settings.Settings, file, action string, change edit.Change, granted bool) {
	if !e.Globals.Quiet && !e.Globals.JSON {
		e.Note(fmt.Sprintf("toolreg: %s server %q in %s\n", action, change.Name, terminal.Line(file)))
	}
	if file == projectFile(s) && !granted {
		message := "the server counts once the settings of this project are trusted"
		if s.Project != nil && s.Project.Trusted {
			message = "the settings of this project have changed, so they are ignored until you trust them again"
		}
		e.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "project_untrusted", Message: message, Hint: "toolreg trust grant"})
	}
	for _, server := range s.Servers {
		if change.Entry != nil && server.Name == change.Name {
			e.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "server_shadowed",
				Message: fmt.Sprintf("another server %q is set at %s; the place that counts more decides", change.Name, server.Origin), Hint: "toolreg settings path shows the order of places"})
		}
	}
}

// projectFile is the settings file of the project, "" where there is none.
func projectFile(s *settings.Settings) string {
	path, err := settings.FileIn(filepath.Join(s.ProjectRoot, ".toolreg"))
	if err != nil {
		return ""
	}
	return path
}
