package serverscmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/session"
	"github.com/toolreg/toolreg/internal/terminal"
)

func newTestCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Connect to a server and say what it offers",
		Long: `Connect to a server of the settings, whatever is cached of it, and print what it
is and the names of its tools.

With --json it prints the fields of "toolreg servers" and toolNames.
Exit codes: 0, 2, 3 (no such server), 8 (it failed, or it needs a login).`,
		Args: cli.ArgsBetween(1, 1, "the NAME of a server"),
		RunE: func(cmd *cobra.Command, argv []string) error { return runTest(cmd.Context(), e, argv[0]) },
	}
}

// trial is what came of connecting to a server; the JSON of servers test.
type trial struct {
	mcpclient.Info
	ToolNames []string `json:"toolNames"` // as calls name them

	err error // why it failed
}

func runTest(ctx context.Context, e *cli.Env, name string) error {
	t, err := try(ctx, e, name)
	if err != nil {
		return err
	}
	if e.Globals.JSON {
		if err := e.PrintJSON(t); err != nil {
			return err
		}
		return t.err
	}
	if t.err != nil {
		return t.err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", t)
	for _, tool := range t.ToolNames {
		fmt.Fprintf(&b, "  %s\n", terminal.Line(tool))
	}
	_, err = e.Out.Write([]byte(b.String()))
	return err
}

// try connects to a server of the settings. That the server fails is no error.
func try(ctx context.Context, e *cli.Env, name string) (*trial, error) {
	s, err := e.Session(ctx, cli.SessionOptions{Options: session.Options{Counts: true}, Ask: true})
	if err != nil {
		return nil, err
	}
	server, err := serverNamed(e, s, name)
	if err != nil {
		return nil, err
	}
	on := []*mcpclient.Source{server}
	reg, err := s.LoadServers(ctx, on)
	if err != nil {
		return nil, err
	}
	t := &trial{Info: session.Infos(reg, on, nil)[0], ToolNames: []string{}}
	for _, tool := range reg.ByServer(t.Name) {
		t.ToolNames = append(t.ToolNames, tool.Name)
	}
	for _, r := range reg.Reports() {
		t.err = r.Err
	}
	var diags []registry.Diagnostic
	for _, d := range s.Diagnostics(reg) {
		if d.Code != "source_failed" { // which is the result
			diags = append(diags, d)
		}
	}
	e.Diagnose(diags)
	return t, nil
}

// String says in a line what a server that works is and has.
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
	return fmt.Sprintf("server %q works%s: %s, connected in %d ms over %s", t.Name, terminal.Line(what), strings.Join(about, ", "), t.ConnectMs, t.Transport)
}
