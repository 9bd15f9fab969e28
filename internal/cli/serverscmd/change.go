package serverscmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolscan"
	"github.com/toolreg/toolreg/internal/ui"
)

// target holds the options for where servers are added and whether they are tested.
type target struct {
	scope  string
	noTest bool
}

func (t *target) flags(cmd *cobra.Command) {
	settingsfile.ScopeFlag(cmd, &t.scope, "user", "")
	cmd.Flags().BoolVar(&t.noTest, "no-test", false, "do not connect to the server to test it")
}

// adding returns the change that adds servers to a file: either all or none.
func (t *target) adding(e *cli.Env, file string, all ...edit.Change) change {
	c := change{action: "added", files: []string{file}, test: !t.noTest && !e.Config.Globals.Cached}
	for _, entry := range all {
		c.names = append(c.names, entry.Name)
	}
	c.apply = func(file string, data []byte) (out []byte, err error) {
		for _, entry := range all {
			if data, err = entry.Apply(file, data); err != nil {
				return nil, err
			}
		}
		return data, nil
	}
	return c
}

// addServers adds servers. If list is set, the JSON output is a list.
func (t *target) addServers(ctx context.Context, e *cli.Env, all []edit.Change, list bool) error {
	s, err := beforeChange(ctx, e.Config)
	if err != nil {
		return err
	}
	file, err := settingsfile.Path(e, t.scope)
	if err != nil {
		return err
	}
	c := t.adding(e, file, all...)
	c.list = list
	return c.run(ctx, e, s)
}

// change is a change to servers in a settings file. Each command that changes servers
// creates one, and run does the rest for all of them.
type change struct {
	action string   // the action in the JSON, see editedServer
	names  []string // names of the servers; if empty, nothing is changed
	files  []string // the first file in which the change is possible is changed
	apply  func(file string, old []byte) ([]byte, error)
	ask    bool   // show the change and ask, regardless of the file
	test   bool   // connect to the servers afterwards
	list   bool   // the JSON output is a list
	part   bool   // the caller prints the JSON
	runs   string // of the JSON, see editedServer
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
		granted, err = settingsfile.Edit(ctx, e, file, c.ask,
			func(old []byte) ([]byte, error) { return c.apply(file, old) })
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

// noServerToEdit returns the error for a server that is in none of the editable files. It says
// where the server comes from.
func noServerToEdit(s *settings.Settings, name string) error {
	server := s.Entry(name)
	if server == nil {
		return &sources.NoServerError{Name: name, Known: s.EntryNames()}
	}
	return cli.Usage(fmt.Sprintf("server %q is defined at %s, which this command cannot change", name, server.Origin),
		"change it there, or name the file with --scope")
}

// warnShadowed warns that another scope has a server with the name that was added.
func warnShadowed(ios *cli.IO, s *settings.Settings, name string) {
	if server := s.Entry(name); server != nil {
		ios.Warn(registry.Warning("server_shadowed", "",
			fmt.Sprintf("%q is also the name of a server at %s; the one with higher precedence is used", name, server.Origin),
			"run toolreg settings path to see the precedence"))
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

// tryAdded connects to the servers that were added to a file, unless they are
// disabled or ignored, and reports what they offer. A failing server is a
// warning.
func tryAdded(ctx context.Context, e *cli.Env, file string, added []editedServer) error {
	s, err := e.Engine.Session(ctx, testOptions())
	if err != nil {
		return err
	}
	isAdded := func(server settings.Server) bool {
		return server.Origin.Name == file &&
			slices.ContainsFunc(added, func(a editedServer) bool { return a.Name == server.Name })
	}
	on, _, err := s.Servers.Named()
	if err != nil {
		return err
	}
	servers := slices.DeleteFunc(slices.Clone(on),
		func(server *mcpclient.Source) bool { return !isAdded(server.Settings()) })
	apis := slices.DeleteFunc(s.Servers.APIs(),
		func(api *openapi.Source) bool { return !isAdded(api.Settings().Server) })
	trials, all, err := try(ctx, e, s, servers, apis)
	if err != nil {
		return err
	}
	for _, t := range trials {
		added[slices.IndexFunc(added, func(a editedServer) bool { return a.Name == t.Name })].Test = t
		if t.err != nil {
			e.IO.Warn(t.warning())
		} else if !e.IO.JSON {
			e.IO.Notef("%s%s", t, someOf(t.ToolNames))
		}
	}
	found, failed, err := s.Check(ctx, all, servers, apis...)
	if err != nil {
		return err
	}
	for _, err := range failed {
		e.IO.Warn(registry.Warning("server_test_failed", "", err.Error(), ""))
	}
	for _, f := range found.Findings {
		a := &added[slices.IndexFunc(added, func(a editedServer) bool { return a.Name == f.Server })]
		a.Findings = append(a.Findings, f)
	}
	return nil
}

// warning reports that an entry was kept although its server fails.
func (t *trial) warning() registry.Diagnostic {
	source := registry.MCPPrefix + t.Name
	if t.isAPI() {
		source = registry.APIPrefix + t.Name
	}
	d := registry.Diagnostic{Severity: registry.SeverityWarning, Code: "server_test_failed", Source: source,
		Message: t.err.Error() + "; the entry was kept",
		Hint: "toolreg servers edit " + cli.Quote(t.Name) +
			" changes it, toolreg servers test " + cli.Quote(t.Name) + " tries again"}
	if t.State == mcpclient.StateNeedsLogin {
		d.Message, d.Hint = fmt.Sprintf("server %q needs a login", t.Name), "toolreg servers login "+cli.Quote(t.Name)
	}
	return d
}

// maxNamed is how many tools are named on a line.
const maxNamed = 5

// someOf returns the first names after a colon.
func someOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	out := ": " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// disableSuspicious shows what was found in added servers. One with a finding of severity high is
// disabled, unless the person wants to keep it enabled.
func disableSuspicious(ctx context.Context, e *cli.Env, file string, added []editedServer) error {
	for i := range added {
		a := &added[i]
		if len(a.Findings) == 0 {
			continue
		}
		if a.Findings[0].Severity != toolscan.High { // the most severe is first
			e.IO.Notef("%s in what server %q says; toolreg servers check %s shows them",
				text.Count(len(a.Findings), "finding"), a.Name, cli.Quote(a.Name))
			continue
		}
		keep, err := keepSuspicious(ctx, e, a)
		if err != nil {
			return err
		}
		if keep {
			continue
		}
		off := true
		if _, err := settingsfile.Edit(ctx, e, file, false, func(old []byte) ([]byte, error) {
			return edit.Change{Name: a.Name, Off: &off}.Apply(file, old)
		}); err != nil {
			return fmt.Errorf("disabling server %q: %w", a.Name, err)
		}
		a.Disabled = true
		e.IO.Notef("disabled server %q because of what it says; toolreg servers enable %s enables it",
			a.Name, cli.Quote(a.Name))
	}
	return nil
}

// keepSuspicious shows the findings of a server, and asks at a terminal whether to keep it
// enabled.
func keepSuspicious(ctx context.Context, e *cli.Env, a *editedServer) (bool, error) {
	var b strings.Builder
	for _, f := range a.Findings {
		b.WriteString(findingText(f))
	}
	tty, err := openTTY(e)
	if err != nil {
		if !e.IO.JSON {
			e.IO.Note(b.String())
		}
		return false, nil
	}
	defer tty.Close()
	return cli.AskYes(ctx, tty,
		ui.Query{
			Text:     "\n" + b.String(),
			About:    "Server " + ui.Line(a.Name) + " may steer a model or hide something.\n",
			Question: "Keep it enabled?",
		})
}

// openTTY opens the terminal for a question about a server that is added. With --json nobody is asked.
func openTTY(e *cli.Env) (*ui.TTY, error) {
	if e.IO.JSON {
		return nil, errors.New("--json is given")
	}
	return e.Person.Open()
}

// noteBundle says where the bundle is that a server had. It stays, because a server of
// another project may be the same.
func noteBundle(e *cli.Env, s *settings.Settings, name string) {
	if folder := installer(e, s).BundleFolder(name); folder != "" {
		e.IO.Notef("its bundle stays in %s; delete it if no other project uses it", folder)
	}
}
