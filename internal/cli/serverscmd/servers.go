// Package serverscmd implements the command servers, which shows MCP servers
// and what they offer besides tools, changes their entries in the settings, and
// manages logins.
package serverscmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/ui"
)

// New returns the command servers, which lists them if it has no subcommand.
func New(e *cli.Env) *cobra.Command {
	cmd := newListCommand(e)
	cmd.Use = "servers [NAME…]"
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, argv []string) error { return suggestCommand(cmd, list(cmd, argv)) }
	cmd.AddCommand(newListCommand(e))
	cmd.AddCommand(editCommands(e)...)
	cmd.AddCommand(newLoginCommand(e), newLogoutCommand(e))
	cmd.AddCommand(newFindCommand(e), newOutdatedCommand(e), newUpgradeCommand(e), newTestCommand(e),
		newCheckCommand(e), newReadCommand(e), newPromptCommand(e), newStopCommand(e))
	cmd.AddCommand(newStartCommands(e)...)
	return cmd
}

// suggestCommand extends the error about an unknown server if its name may be a misspelled
// command.
func suggestCommand(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*sources.NoServerError](err)
	if !ok || len(registry.Near(unknown.Name, unknown.Known)) > 0 {
		return err
	}
	if near := cli.NearCommand(cmd, unknown.Name); near != "" {
		return &registry.Failure{Text: unknown.Error(), Cause: unknown,
			Help: fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near)}
	}
	return err
}

func newListCommand(e *cli.Env) *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list [NAME…]",
		Short: "Show MCP servers and APIs and their state",
		Long: `Connect to the MCP servers of the settings, or to those named, and show the
state of each and what it offers. The documents of the setting openapi are read
too; these have the transport "openapi", and the address of the API in place of
a protocol version.

A server that outlasts the run (keep) has the state "kept" while it runs. With the
setting cache.discovery a cached server is not connected: its state is "cached", its
age is shown, and --refresh connects.

In a pipe each server is one line: name, transport, state, protocol version,
tools, prompts, resources, milliseconds to connect, origin, error and the age of
the cached list, separated by tabs. With --prompts or --resources it shows what
the servers offer besides tools.

Exit codes: 0, 2, 3 (no such server), 8 (a server that is named failed or, with
--strict, any server).`,
		Example: `  toolreg servers
  toolreg servers github --refresh
  toolreg servers list --prompts`,
		ValidArgsFunction: complete.Args(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.prompts || o.resources {
				return runOffers(cmd.Context(), e, o, argv)
			}
			return runList(cmd.Context(), e, o, argv)
		},
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "fail with exit code 8 if any server failed")
	cmd.Flags().BoolVar(&o.prompts, "prompts", false, "show the prompts that servers offer")
	cmd.Flags().BoolVar(&o.resources, "resources", false,
		"show the resources that servers offer, and the templates of their URIs")
	return cmd
}

func runList(ctx context.Context, e *cli.Env, o *listOptions, names []string) error {
	s, err := e.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{Counts: true, Kept: mcpclient.LookKept}, InServers: true})
	if err != nil {
		return err
	}
	doc, reg, err := StateOf(ctx, s, names)
	if err != nil {
		return err
	}
	if _, _, err := sources.Kept(ctx, e.Config.Folders, s.Settings); err != nil && !s.Settings.Globals.Fresh {
		e.IO.Warn(registry.Warning("not_kept", "", "servers with keep end with each run: "+err.Error(),
			"set XDG_RUNTIME_DIR to a folder with a short path outside the workspace that only you can access"))
	}
	if err := printServers(e.IO, doc); err != nil {
		return err
	}
	e.Config.NoteGeminiSettings(s.Settings)
	return o.NamedFailure(reg, names)
}

// Document is the JSON of servers.
type Document struct {
	Servers []mcpclient.Info `json:"servers"`
}

// StateOf connects to servers, or to all if there are no names, and describes them. The
// registry has their tools.
func StateOf(ctx context.Context, s *engine.Session, names []string) (Document, *registry.Registry, error) {
	on, off, err := s.Servers.Named(names...)
	if err != nil {
		return Document{}, nil, err
	}
	apis := s.Servers.APIs(names...)
	reg, err := s.Tools.LoadServers(ctx, on, apis...)
	if err != nil {
		return Document{}, nil, err
	}
	return Document{append(sources.Infos(reg, on, off), sources.APIInfos(ctx, reg, apis)...)}, reg, nil
}

func printServers(ios *cli.IO, doc Document) error {
	infos := doc.Servers
	t := ui.Aged{Table: ui.Table{Header: []string{
		"NAME", "TRANSPORT", "STATE", "PROTOCOL", "TOOLS", "PROMPTS", "RESOURCES", "MS", "ORIGIN", "ERROR",
	}, Whole: []string{"ERROR"},
		Spare: []string{"MS", "RESOURCES", "PROMPTS", "PROTOCOL", "TRANSPORT", "ORIGIN"}}}
	failed := 0
	for _, s := range infos {
		if s.State == mcpclient.StateFailed {
			failed++
		}
		state := string(s.State)
		if s.Kept != nil {
			state = "kept"
		}
		t.AddAged(s.CachedAt, s.AgeMs, s.Name, s.Transport, state,
			cmp.Or(s.BaseURL, s.ProtocolVersion), strconv.Itoa(s.Tools), strconv.Itoa(s.Prompts),
			strconv.Itoa(s.Resources), strconv.FormatInt(s.ConnectMs, 10), s.Origin, cli.WithoutSource(s.Error, s.Name))
	}
	for _, s := range infos {
		if ios.OutTTY && s.Deprecated != nil {
			ios.Notef("server %q uses %s", s.Name, s.DeprecatedText())
		}
	}
	summary := cli.WithFailed(len(infos), "server", failed)
	if failed > 0 {
		summary += "; toolreg doctor shows what to do"
	}
	if len(infos) > 0 {
		ios.Summary("%s", summary)
	} else {
		ios.Notef("no MCP servers in the settings")
	}
	return ios.PrintResult(map[string][]mcpclient.Info{"servers": infos}, t.For(ios.OutTTY), "")
}

func editCommands(e *cli.Env) []*cobra.Command {
	scope := ""
	command := func(name, options, short, long, action string, change edit.Change) *cobra.Command {
		cmd := &cobra.Command{
			Use: name + " NAME", Example: "  toolreg servers " + name + " github" + options,
			Short: short, Long: editHelp(long, editCodes),
			Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
			ValidArgsFunction: complete.Arg(e.Complete().Servers()),
			RunE: func(cmd *cobra.Command, argv []string) error {
				change.Name = argv[0]
				return runEdit(cmd.Context(), e, scope, action, change)
			},
		}
		settingsfile.ScopeFlag(cmd, &scope, "", whereFound)
		return cmd
	}
	on, off := false, true
	return []*cobra.Command{
		newAddCommand(e), newAddJSONCommand(e), newImportCommand(e), newEditCommand(e),
		command("remove", "", "Remove a server or an API from the settings",
			"Remove a server from the settings file that contains it.", actionRemoved, edit.Change{Drop: true}),
		command("enable", "", "Enable a disabled server",
			"Enable a server by removing disabled from its entry.", "enabled", edit.Change{Off: &on}),
		command("disable", " --scope user", "Disable a server without removing it",
			"Disable a server by setting disabled to true.", "disabled", edit.Change{Off: &off}),
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
		ValidArgsFunction: complete.Arg(e.Complete().Servers()),
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
	tty, err := e.Person.Require(cli.NoTerminal("servers edit",
		"toolreg settings set "+edit.Setting(file, data, name)+".FIELD VALUE works without one"))
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
	files, err := settingsfile.Paths(e, scope)
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

func runEdit(ctx context.Context, e *cli.Env, scope, action string, entry edit.Change) error {
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	files, err := settingsfile.Paths(e, scope)
	if err != nil {
		return err
	}
	return change{action: action, names: []string{entry.Name}, files: files, apply: entry.Apply}.run(ctx, e, s)
}

func editHelp(what, codes string) string {
	return what + `

The file's comments, order and notation are kept. A project whose settings change
has to be trusted again.

Exit codes: 0, 1, 2, 3 (no such server), ` + codes + "."
}

// editCodes are the exit codes of a command that asks nothing.
const editCodes = "5 (inside a tool's run)"

// describedCodes are the exit codes of a command that installs servers of a registry.
const describedCodes = `4 (a value of --set does not fit),
5 (refused, you said no, or inside a tool's run), 6 (nobody can be asked),
8 (a source failed), 9 (a finding of severity high)`
