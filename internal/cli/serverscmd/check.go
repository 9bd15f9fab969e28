package serverscmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolscan"
	"github.com/toolreg/toolreg/internal/ui"
)

func newCheckCommand(e *cli.Env) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "check NAME… | --all",
		Short: "Look for what servers say to steer a model",
		Long: `Connect to servers and APIs of the settings, ignoring the cache, and report what in
their tools, prompts, resources and instructions is made to steer a model or to hide
from you: invisible characters, instructions to read files, to send data or to keep
something from you, tools of other servers, params that ask for the conversation or
for secrets, names that resemble those of other tools, encoded text, and tools that
have changed since you approved or locked them.

Each finding has a rule, a severity (high, medium, low), the words that were found,
and their place as a JSON pointer into the definition. To accept findings, add them
to the setting check.silence with a reason. A server without findings is not
known to be harmless: the rules know English, and only what is written, not what a
server does.

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
	if e.Config.Globals.Cached {
		return cli.Usage("servers check needs the servers, and --cached contacts none",
			"remove --cached (TOOLREG_CACHED)")
	}
	s, err := e.Engine.Session(ctx, testOptions())
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
