package serverscmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolscan"
	"github.com/toolreg/toolreg/internal/ui"
)

func newTestCommand(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Connect to a server and show what it offers",
		Long: `Connect to a server of the settings, ignoring the cache, and print what it
is and the names of its tools. Of an API it reads the document and calls the first
operation that only reads and needs no params.

With --json it prints the fields of "toolreg servers" and toolNames.
Exit codes: 0, 2, 3 (no such server), 8 (it failed, or it needs a login).`,
		Example:           "  toolreg servers test github",
		Args:              cli.ArgsBetween(1, 1, "the NAME of a server"),
		ValidArgsFunction: complete.Arg(e.Complete().Servers()),
		RunE:              func(cmd *cobra.Command, argv []string) error { return runTest(cmd.Context(), e, argv[0]) },
	}
}

// trial is the result of connecting to a server; it is the JSON of servers
// test.
type trial struct {
	mcpclient.Info
	ToolNames []string `json:"toolNames"`       // names for calls
	Tried     string   `json:"tried,omitempty"` // of an API: how the call of an operation ended

	err error // the error of connecting
}

func runTest(ctx context.Context, e *cli.Env, name string) error {
	s, err := connecting(ctx, e, "servers test needs the server")
	if err != nil {
		return err
	}
	t, err := tryNamed(ctx, e, s, name)
	if err != nil {
		return err
	}
	if t.err != nil && !e.IO.JSON {
		return t.err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", t)
	for _, tool := range t.ToolNames {
		fmt.Fprintf(&b, "  %s\n", ui.Line(tool))
	}
	return cmp.Or(e.IO.PrintText(t, b.String()), t.err)
}

func tryNamed(ctx context.Context, e *cli.Env, s *engine.Session, name string) (*trial, error) {
	var servers []*mcpclient.Source
	apis := slices.DeleteFunc(s.Servers.APIs(), func(api *openapi.Source) bool { return api.Settings().Name != name })
	if len(apis) == 0 {
		server, err := serverNamed(e.IO, s, name)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	trials, _, err := try(ctx, e, s, servers, apis)
	if err != nil {
		return nil, err
	}
	return trials[0], nil
}

// connecting opens a session that does not use the cache. why is for the error with --cached.
func connecting(ctx context.Context, e *cli.Env, why string) (*engine.Session, error) {
	if e.Config.Globals.Cached {
		return nil, cli.Usage(why+", and --cached contacts none", "remove --cached (TOOLREG_CACHED)")
	}
	return e.Engine.Session(ctx, testOptions())
}

func testOptions() cli.SessionOptions {
	return cli.SessionOptions{
		Options: engine.Options{Counts: true, Kept: mcpclient.OwnServers, Listed: &engine.Listed{}}, Ask: true,
	}
}

// try connects to servers and APIs. For an API it also calls the first operation that only reads
// and needs no params. The failure of one is in its trial, not in the error. all comes from
// [lastListed].
func try(ctx context.Context, e *cli.Env, s *engine.Session, servers []*mcpclient.Source,
	apis []*openapi.Source) (trials []*trial, all *registry.Registry, err error) {
	reg, err := s.Tools.LoadServers(ctx, servers, apis...)
	if err != nil {
		return nil, nil, err
	}
	failed := map[string]error{}
	for _, r := range reg.Reports() {
		name, _ := registry.ServerOf(r.Name)
		failed[name] = r.Err
	}
	all = lastListed(ctx, e, s)
	names := map[[2]string]string{} // of toolreg list, by server and its name for the tool
	if all != nil {
		for _, tool := range all.Tools() {
			names[[2]string{tool.Server, tool.ServerTool}] = tool.Name
		}
	}
	for _, info := range append(sources.Infos(reg, servers, nil), sources.APIInfos(ctx, reg, apis)...) {
		t := &trial{Info: info, ToolNames: []string{}, err: failed[info.Name]}
		tools := reg.ByServer(info.Name)
		for _, tool := range tools {
			t.ToolNames = append(t.ToolNames, cmp.Or(names[[2]string{info.Name, tool.ServerTool}], tool.Name))
		}
		for _, api := range apis {
			if api.Settings().Name == t.Name && t.err == nil {
				t.call(ctx, api, tools)
			}
		}
		trials = append(trials, t)
	}
	// it is the result
	e.IO.Diagnose(slices.DeleteFunc(s.Tools.Diagnostics(reg),
		func(d registry.Diagnostic) bool { return d.Code == settings.CodeSourceFailed }))
	return trials, all, nil
}

func (t *trial) isAPI() bool { return t.Transport == sources.APITransport }

func (t *trial) call(ctx context.Context, api *openapi.Source, tools []*registry.Tool) {
	name, result, err := api.Try(ctx, tools)
	switch t.err = err; {
	case name == "":
		t.Tried = "no operation that only reads can be called without params"
	case err == nil && result.IsError:
		t.err = fmt.Errorf("API %q: %s", t.Name, result.Summary)
	default:
		t.Tried = result.Summary
	}
}

// String describes a working server in one line.
func (t *trial) String() string {
	if t.isAPI() {
		return fmt.Sprintf("API %q: %s; it has %s", t.Name, ui.Line(t.Tried), text.Count(t.Tools, "tool"))
	}
	about := []string{text.Count(t.Tools, "tool")}
	if t.Prompts > 0 {
		about = append(about, text.Count(t.Prompts, "prompt"))
	}
	if t.Resources > 0 {
		about = append(about, text.Count(t.Resources, "resource"))
	}
	what := ""
	if name, ok := jsonx.Text(jsonx.Get(t.ServerInfo, "name")); ok {
		version, _ := jsonx.Text(jsonx.Get(t.ServerInfo, "version"))
		what = " (" + strings.TrimSpace(name+" "+version) + ")"
	}
	return fmt.Sprintf("server %q works%s: %s, connected in %d ms over %s",
		t.Name, ui.Line(what), strings.Join(about, ", "), t.ConnectMs, t.Transport)
}

// lastListed returns the tools of all sources as listed last, without starting anything; nil if
// that fails.
func lastListed(ctx context.Context, e *cli.Env, s *engine.Session) *registry.Registry {
	s.Records.Flush() // Close reports what fails
	still, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Still: true}, InDocs: true})
	if err != nil {
		return nil
	}
	reg, err := still.Tools.All(ctx)
	if err != nil {
		return nil
	}
	return reg
}

func newCheckCommand(e *cli.Env) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "check NAME… | --all",
		Short: "Find text of servers that may steer a model",
		Long: `Connect to servers and APIs of the settings, ignoring the cache, and report text in
their tools, prompts, resources and instructions that may steer a model or hide
something from you: invisible characters, instructions to read files, to send data or
to keep something secret, tools of other servers, params that ask for the
conversation or for secrets, names that resemble those of other tools, and encoded
text. It also reports tools that have changed since you approved or locked them.

Each finding has a rule, a severity (high, medium, low), the words that were found,
and their place as a JSON pointer into the definition. To accept findings, add them
to the setting check.silence with a reason. A server without findings is not
known to be harmless: instructions may be worded like any description, and what a
server does is not checked.

In a pipe each finding is one line: severity, rule, server, kind (tool, prompt,
resource or server), its name, place, words and advice, separated by tabs.

Exit codes: 0, 2, 3 (no such server), 8 (a server failed), 9 (a finding is of
severity high).`,
		Example: `  toolreg servers check github
  toolreg servers check --all --json`,
		ValidArgsFunction: complete.Args(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if all != (len(argv) == 0) {
				return cli.Usage("give the NAME of a server, or --all", "see toolreg servers check --help")
			}
			return runCheck(cmd.Context(), e, argv)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "check all servers and APIs")
	return cmd
}

func runCheck(ctx context.Context, e *cli.Env, names []string) error {
	s, err := connecting(ctx, e, "servers check needs the servers")
	if err != nil {
		return err
	}
	on, off, err := s.Servers.Named(names...)
	if err != nil {
		return err
	}
	apis := s.Servers.APIs(names...)
	if len(on)+len(apis) == 0 && len(off) > 0 && len(names) > 0 {
		return notStarted(off[0].Server)
	}
	reg, err := s.Tools.LoadServers(ctx, on, apis...)
	if err != nil {
		return err
	}
	var failed []error
	for _, source := range reg.Failed() {
		failed = append(failed, reg.Failure(source))
	}
	found, more, err := s.Check(ctx, lastListed(ctx, e, s), on, apis...)
	if err != nil {
		return err
	}
	failed = append(failed, more...)
	for _, err := range failed {
		e.IO.Warn(registry.Diagnostic{Severity: registry.SeverityError, Code: "source_failed", Message: err.Error()})
	}
	if err := printChecked(e.IO, found, len(on)+len(apis)-len(failed)); err != nil {
		return err
	}
	switch {
	case found.High():
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	case len(failed) > 0:
		return &cli.ExitError{Code: cli.ExitSourceFailed}
	}
	return nil
}

func printChecked(ios *cli.IO, found engine.Checked, checked int) error {
	if !ios.OutTTY {
		t := ui.Table{}
		for _, f := range found.Findings {
			kind, name := itemOf(f)
			t.Add(string(f.Severity), f.Rule, f.Server, kind, name, f.Place, f.Words, f.Advice)
		}
		return ios.PrintResult(found, &t, "")
	}
	var b strings.Builder
	for _, f := range found.Findings {
		b.WriteString(findingText(f))
	}
	summary := fmt.Sprintf("%s in %s", text.Count(len(found.Findings), "finding"), text.Count(checked, "server"))
	if n := len(found.Silenced); n > 0 {
		summary += fmt.Sprintf("; %d accepted by check.silence", n)
	}
	fmt.Fprintf(&b, "%s\n", summary)
	return ios.PrintText(found, b.String())
}

func itemOf(f toolscan.Finding) (kind, name string) {
	switch {
	case f.Tool != "":
		return "tool", f.Tool
	case f.Prompt != "":
		return "prompt", f.Prompt
	case f.Resource != "":
		return "resource", f.Resource
	}
	return "server", f.Server
}

func findingText(f toolscan.Finding) string {
	kind, name := itemOf(f)
	of := ""
	if kind != "server" {
		of = " of " + f.Server
	}
	return fmt.Sprintf("%s: %s %s%s, %s\n  %s\n  │ %s\n  %s\n", f.Severity, kind, ui.Line(name), ui.Line(of),
		f.Rule, ui.Line(f.Place), ui.Line(f.Words), f.Advice)
}
