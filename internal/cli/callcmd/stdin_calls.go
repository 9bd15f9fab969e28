package callcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/provider"
)

// stdinCalls holds the options of call for reading calls from stdin.
type stdinCalls struct {
	selection cli.Selection // of --format
	format    string
	batch     bool
	parallel  int
	trace     bool
	hold      bool
}

func (m *stdinCalls) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&m.format, "format", "f", "", "answer the calls in a model's response on stdin, in this `format`")
	f.BoolVar(&m.batch, "batch", false, "run the calls on stdin, one JSON object per line")
	f.IntVar(&m.parallel, "parallel", 1, "with --batch: run `N` calls at once")
	f.BoolVar(&m.trace, "trace", false, "with --format and --batch: show each call on stderr")
	f.BoolVar(&m.hold, "hold", false, "with --format: run nothing while a call needs an answer")
	complete.Flag(cmd, "format", completeFormats)
}

func (m *stdinCalls) wanted() bool { return m.format != "" || m.batch }

// check returns an error for flags and arguments that apply only to a single
// call.
func (m *stdinCalls) check(cmd *cobra.Command, argv []string) error {
	name := "--batch"
	if m.format != "" {
		name = "--format"
	}
	refuse := func(what string) error {
		return &cli.UsageError{Err: fmt.Errorf("%s and %s cannot be used together", name, what), Hint: name + " takes every call from stdin; see toolreg call --help"}
	}
	if len(argv) > 0 {
		return refuse(fmt.Sprintf("the tool %q", argv[0]))
	}
	others := []string{"params", "params-file", "raw", "output", "stream"}
	if m.format != "" {
		others = append(others, "batch", "parallel")
	}
	if m.format == "" {
		others = append(others, "source", "server", "plugin", "category", "tag", "optional", "hold")
	}
	for _, other := range others {
		if cmd.Flags().Changed(other) {
			return refuse("--" + other)
		}
	}
	return nil
}

func (m *stdinCalls) run(ctx context.Context, e *cli.Env, preset string) error {
	var t *tracer
	if m.trace {
		t = &tracer{e.IO}
	}
	if m.batch {
		return runBatch(ctx, e, t, m.parallel, preset)
	}
	return runRoundTrip(ctx, e, t, m.format, preset, &m.selection, m.hold)
}

// completeFormats completes the formats of responses.
func completeFormats(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, f := range provider.CallFormats() {
		out = append(out, f.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
