package serverscmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/ui"
)

func newTestCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Connect to a server and show what it offers",
		Long: `Connect to a server of the settings, ignoring the cache, and print what it
is and the names of its tools.

With --json it prints the fields of "toolreg servers" and toolNames.
Exit codes: 0, 2, 3 (no such server), 8 (it failed, or it needs a login).`,
		Example:           "  toolreg servers test github",
		Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
		ValidArgsFunction: complete.Arg(e.Complete().Servers),
		RunE:              func(cmd *cobra.Command, argv []string) error { return runTest(cmd.Context(), e, argv[0]) },
	}
}

// trial is the result of connecting to a server; it is the JSON of servers
// test.
type trial struct {
	mcpclient.Info
	ToolNames []string `json:"toolNames"` // names for calls

	err error // the error of connecting
}

func runTest(ctx context.Context, e *cli.Env, name string) error {
	s, err := e.Engine.Session(ctx, testOptions())
	if err != nil {
		return err
	}
	server, err := serverNamed(e.IO, s, name)
	if err != nil {
		return err
	}
	trials, err := try(ctx, e, s, []*mcpclient.Source{server})
	if err != nil {
		return err
	}
	t := trials[0]
	if e.IO.JSON {
		if err := e.IO.PrintJSON(t); err != nil {
			return err
		}
	}
	if t.err != nil || e.IO.JSON {
		return t.err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", t)
	for _, tool := range t.ToolNames {
		fmt.Fprintf(&b, "  %s\n", ui.Line(tool))
	}
	_, err = e.IO.Out.Write([]byte(b.String()))
	return err
}

func testOptions() cli.SessionOptions {
	return cli.SessionOptions{Options: engine.Options{Counts: true, Kept: mcpclient.OwnServers}, Ask: true}
}

// try connects to servers. The failure of a server is in its trial, not in the error.
func try(ctx context.Context, e *cli.Env, s *engine.Session, servers []*mcpclient.Source) ([]*trial, error) {
	reg, err := s.Tools.LoadServers(ctx, servers)
	if err != nil {
		return nil, err
	}
	failed := map[string]error{}
	for _, r := range reg.Reports() {
		failed[r.Name] = r.Err
	}
	names := listedNames(ctx, e, s, servers)
	var out []*trial
	for _, info := range engine.Infos(reg, servers, nil) {
		t := &trial{Info: info, ToolNames: []string{}, err: failed[registry.MCPPrefix+info.Name]}
		for _, tool := range reg.ByServer(info.Name) {
			t.ToolNames = append(t.ToolNames, cmp.Or(names[[2]string{info.Name, tool.ServerTool}], tool.Name))
		}
		out = append(out, t)
	}
	e.IO.Diagnose(slices.DeleteFunc(s.Tools.Diagnostics(reg), func(d registry.Diagnostic) bool { return d.Code == settings.CodeSourceFailed })) // it is the result
	return out, nil
}

// listedNames returns the names that toolreg list gives to the tools of servers, by server
// and its name for the tool. It goes by what the other servers listed last; nothing is
// started for it.
func listedNames(ctx context.Context, e *cli.Env, s *engine.Session, servers []*mcpclient.Source) map[[2]string]string {
	out := map[[2]string]string{}
	s.Records.Flush() // Close reports what fails
	still, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Still: true}, InDocs: true})
	if err != nil {
		return out
	}
	reg, err := still.Tools.All(ctx)
	if err != nil {
		return out
	}
	for _, server := range servers {
		for _, t := range reg.ByServer(server.Info().Name) {
			out[[2]string{t.Server, t.ServerTool}] = t.Name
		}
	}
	return out
}

// tryAdded connects to the servers that were added to a file, unless they are
// disabled or ignored, and reports what they offer. A failing server is a
// warning.
func tryAdded(ctx context.Context, e *cli.Env, file string, added []editedServer) error {
	s, err := e.Engine.Session(ctx, testOptions())
	if err != nil {
		return err
	}
	counts := func(a editedServer) bool {
		return slices.ContainsFunc(s.Settings.Servers, func(server settings.Server) bool {
			return server.Name == a.Name && server.Origin.Name == file && !server.Disabled && server.Excluded == nil
		})
	}
	var servers []*mcpclient.Source
	for _, a := range added {
		if !counts(a) {
			continue
		}
		server, err := serverNamed(e.IO, s, a.Name)
		if err != nil {
			return err
		}
		servers = append(servers, server)
	}
	for i := range added {
		isAPI := func(api *openapi.Source) bool {
			a := api.Settings()
			return a.Name == added[i].Name && a.Origin.Name == file
		}
		if at := slices.IndexFunc(s.Servers.APIs(), isAPI); at >= 0 {
			if err := tryAPI(ctx, e, s, s.Servers.APIs()[at], &added[i]); err != nil {
				return err
			}
		}
	}
	trials, err := try(ctx, e, s, servers)
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
	return nil
}

// tryAPI reads the document of an API that was added, and calls an operation that needs no
// params.
func tryAPI(ctx context.Context, e *cli.Env, s *engine.Session, api *openapi.Source, added *editedServer) error {
	reg, err := s.Tools.LoadServers(ctx, nil, api)
	if err != nil {
		return err
	}
	t := &trial{Info: engine.APIInfos(ctx, reg, []*openapi.Source{api})[0], ToolNames: []string{}, err: api.Info().Err}
	tools := reg.ByServer(added.Name)
	for _, tool := range tools {
		t.ToolNames = append(t.ToolNames, tool.Name)
	}
	added.Test = t
	if t.err != nil {
		e.IO.Warn(t.warning())
		return nil
	}
	e.IO.Notef("API %q: %s%s", t.Name, cli.Counted(t.Tools, "tool"), someOf(t.ToolNames))
	switch name, result, err := openapi.Try(ctx, tools); {
	case name == "":
		e.IO.Notef("no operation that only reads can be called without params, so none was tried")
	case err != nil:
		t.err = err
		e.IO.Warn(t.warning())
	case result.IsError:
		t.err = errors.New(result.Summary)
		e.IO.Warn(t.warning())
	default:
		e.IO.Notef("%s", ui.Line(result.Summary))
	}
	return nil
}

// warning reports that an entry was kept although its server fails.
func (t *trial) warning() registry.Diagnostic {
	d := registry.Diagnostic{Severity: registry.SeverityWarning, Code: "server_test_failed", Source: registry.MCPPrefix + t.Name,
		Message: t.err.Error() + "; the entry was kept", Hint: "toolreg servers edit " + cli.Quote(t.Name) + " changes it, toolreg servers test " + cli.Quote(t.Name) + " tries again"}
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

// String describes a working server in one line.
func (t *trial) String() string {
	about := []string{cli.Counted(t.Tools, "tool")}
	if t.Prompts > 0 {
		about = append(about, cli.Counted(t.Prompts, "prompt"))
	}
	if t.Resources > 0 {
		about = append(about, cli.Counted(t.Resources, "resource"))
	}
	what := ""
	if name, ok := jsonx.Text(jsonx.Get(t.ServerInfo, "name")); ok {
		version, _ := jsonx.Text(jsonx.Get(t.ServerInfo, "version"))
		what = " (" + strings.TrimSpace(name+" "+version) + ")"
	}
	return fmt.Sprintf("server %q works%s: %s, connected in %d ms over %s", t.Name, ui.Line(what), strings.Join(about, ", "), t.ConnectMs, t.Transport)
}
