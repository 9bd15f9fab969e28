// Package callcmd implements the command call, which runs one tool, the calls
// in a model's response, or a batch.
package callcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cmp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

type options struct {
	cli.ParamsOptions
	preset    string
	raw       bool
	outputDir string
	images    string
	stream    bool
	stdin     stdinCalls
	optional  bool // ask the person for params even if none is required
	only      bool // this is the only call of the session
	detach    bool // do not wait for a task
}

// New returns the command call.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "call TOOL [k=v…]",
		Short: "Run one tool",
		Long: `Run a tool and print its result: formatted on a terminal, as a model reads it in a
pipe, in full with --json. "toolreg call TOOL --help" shows how to call that tool.

` + cli.ParamsHelp + "\n" + dialogueHelp + "\n" + batchHelp + `
Exit codes: 0, 2, 3 (no such tool), 4 (invalid params), 5 (denied),
6 (nobody to ask), 7 (the tool reported an error), 8 (its source failed),
124 (time limit).`,
		Example: `  toolreg call read_file --help
  toolreg call read_file file_path=go.mod limit=3
  toolreg call read_file < params.json
  toolreg call github__create_issue --params-file issue.json --yes
  toolreg call --format anthropic < response.json
  toolreg call --batch --parallel 4 < calls.jsonl`,
		ValidArgsFunction: complete.Args(e.Complete().Tools(), e.Complete().Params()),
		Args: func(cmd *cobra.Command, argv []string) error {
			if o.stdin.isSet() {
				return o.stdin.checkFlags(cmd, argv)
			}
			if o.stdin.selection.Narrows() {
				return cli.Usage("--source, --server, --plugin, --category, --tag and --optional need --format",
					"give the flags of the toolreg schema command that declared the tools to the model")
			}
			if o.stdin.trace {
				return cli.Usage("--trace needs --format or --batch", "see toolreg call --help")
			}
			if o.stdin.hold {
				return cli.Usage("--hold needs --format",
					"a single call that needs an answer does not run anyway")
			}
			if o.detach && (o.raw || o.stream || o.outputDir != "") {
				return cli.Usage("--detach cannot be used with --raw, --stream or --output",
					"toolreg tasks ID prints the result later")
			}
			if cmd.Flags().Changed("parallel") {
				return cli.Usage("--parallel needs --batch",
					"calls of --format already run concurrently if all of them only read")
			}
			if len(argv) > 0 && text.IsGlob(argv[0]) {
				return cli.Usage(fmt.Sprintf("%q is a glob, and call runs one tool", argv[0]),
					"toolreg list "+cli.Quote(argv[0])+" shows the tools that it matches")
			}
			return cli.ArgsBetween(1, -1, "the name of a tool")(cmd, argv)
		},
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.stdin.isSet() {
				return o.stdin.run(cmd.Context(), e, o.preset)
			}
			return run(cmd.Context(), e, o, argv[0], argv[1:])
		},
	}
	cmd.SetHelpFunc(help(e, o))
	cmd.SetFlagErrorFunc(flagError(e))
	f := cmd.Flags()
	o.ParamsOptions.Flags(cmd)
	cli.PresetFlag(cmd, &o.preset)
	o.stdin.flags(cmd)
	o.stdin.selection.FilterFlags(e, cmd)
	f.BoolVar(&o.raw, "raw", false, "write a text or binary result byte for byte (not to a terminal)")
	f.BoolVar(&o.stream, "stream", false, "print output as it arrives; with --json one event per line")
	f.StringVar(&o.images, "images", "", "show images on a terminal with this `protocol`: auto, kitty, iterm2, never")
	f.BoolVar(&o.detach, "detach", false,
		"leave the call to its MCP server and print the id of its task; see toolreg tasks")
	f.StringVar(&o.outputDir, "output", "", "save images, audio and resources in this `folder` and print their paths")
	complete.Flag(cmd, "images", complete.Words("auto", "kitty", "iterm2", "never"))
	complete.Flag(cmd, "output", complete.Dirs)
	return cmd
}

func run(ctx context.Context, e *cli.Env, o *options, name string, argv []string) error {
	if o.raw && e.IO.OutTTY {
		return cli.Usage(fmt.Sprintf("--raw does not write to a terminal"), "send it to a file or a pipe")
	}
	if o.raw && e.IO.JSON {
		return cli.Usage("--raw and --json cannot be used together", "remove one of them")
	}
	if o.stream && (o.raw || o.outputDir != "") {
		return cli.Usage("--stream cannot be used with --raw or --output", "remove one of them")
	}
	_, err := imageProtocol(e.Config, o.images, "")
	if err := errors.Join(o.Check(), err); err != nil {
		return err
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: o.preset, Uncut: o.raw}})
	if err != nil {
		return err
	}
	o.only = true
	return call(ctx, e, s, o, name, argv)
}

// Call calls a tool with the params that the person enters.
func Call(ctx context.Context, e *cli.Env, s *engine.Session, name string) error {
	return call(ctx, e, s, &options{optional: true}, name, nil)
}

func call(ctx context.Context, e *cli.Env, s *engine.Session, o *options, name string, argv []string) error {
	f, err := e.Engine.Find(ctx, s, name, engine.Query{Call: true, Reach: true}, false)
	if err != nil {
		return err
	}
	params, err := e.Config.Params(ctx, &o.ParamsOptions, f.Tool, argv)
	if err != nil {
		return s.Calls.Refused(ctx, f.Tool, err)
	}
	if f, name, params, err = s.Calls.Resolve(ctx, f, name, params); err != nil {
		return err
	}
	params, line, err := ask(ctx, e, f, params, o.optional)
	if err != nil {
		return err
	}
	if o.outputDir != "" { // before the tool runs, or its result would be lost
		folder, err := cli.OpenOutput(o.outputDir)
		if err != nil {
			return err
		}
		folder.Close()
	}
	images, err := imageProtocol(e.Config, o.images, s.Settings.Images)
	if err != nil {
		return err
	}
	p := &printer{ios: e.IO, person: e.Person, raw: o.raw, outputDir: o.outputDir, images: images}
	show, hide := e.IO.Screen.Progress(f.Tool.Name, f.Tool.Source)
	request := registry.Call{Tool: name, Params: params, Progress: show, Last: o.only}
	print := p.printResult
	if o.stream || p.ios.OutTTY && !p.ios.JSON && p.outputDir == "" && f.Tool.CanUpdateOutput {
		live := &stream{printer: p, showMedia: func(c registry.Content) error { return p.showMedia(ctx, c) }}
		request.Emit, request.Progress, print = live.emit, live.progress(show), live.finish
	}
	var left *engine.Task
	if o.detach {
		if err := s.Tasks.Detach(ctx, f.Tool, &request, func(task engine.Task) { left = &task }); err != nil {
			return err
		}
	}
	result, err := s.Calls.Call(ctx, f, request)
	err = e.IO.Unread(err, &o.ParamsOptions, argv)
	hide()
	if left != nil && err == nil {
		return e.IO.PrintText(leftCall{left.ID, left.Tool}, left.ID+"\n")
	}
	if line != "" {
		defer e.IO.Note("To repeat this call:\n  " + line + "\n") // below the result
	}
	if err != nil && e.IO.OutTTY && e.IO.ErrTTY && !e.IO.JSON {
		result = withoutNotice(result, err)
	}
	return p.printOutcome(f.Tool, result, err, func() error { return print(ctx, f.Tool, result) })
}

// leftCall is a call that its server continues, as JSON.
type leftCall struct {
	Task string `json:"task"` // id for toolreg tasks
	Tool string `json:"tool"`
}

// Print prints the result of a call that was made earlier. It returns what [exec.ResultError]
// returns.
func Print(ctx context.Context, e *cli.Env, t *registry.Tool, result registry.Result, err error) error {
	p := &printer{ios: e.IO, person: e.Person}
	return p.printOutcome(t, result, err, func() error { return p.printResult(ctx, t, result) })
}

func (p *printer) printOutcome(t *registry.Tool, result registry.Result, err error, print func() error) error {
	if err == nil || result.IsError {
		if printErr := print(); printErr != nil {
			return printErr
		}
		if err == nil {
			p.markFailure(t, result)
		}
	}
	return exec.ResultError(result, err)
}

// help shows the help of the named tool, or that of the command if none is
// named.
func help(e *cli.Env, o *options) func(*cobra.Command, []string) {
	return e.Help(func(cmd *cobra.Command) error {
		named := cmd.Flags().Args()
		if len(named) == 0 || o.stdin.isSet() {
			return cli.ErrOwnHelp
		}
		s, err := e.Engine.Session(cmd.Context(), cli.SessionOptions{Options: engine.Options{Preset: o.preset}})
		if err != nil {
			return err
		}
		f, err := e.Engine.Find(cmd.Context(), s, named[0], engine.Query{Reach: true}, false)
		if err != nil {
			return err
		}
		e.IO.Page()
		page := &cli.Page{Width: e.IO.WrapWidth(), Color: e.IO.Color(e.IO.OutTTY)}
		if err := ShowHelp(cmd.Context(), page, s, f.Registry, f.Tool); err != nil {
			return err
		}
		return e.IO.Out.WriteStyled(page.String())
	})
}

// ShowHelp shows how to call a tool: as a command, with a table of its params,
// and whether the call needs confirmation.
func ShowHelp(ctx context.Context, page *cli.Page, s *engine.Session, reg *registry.Registry, t *registry.Tool) error {
	decider, err := s.Calls.Policy(reg)
	if err != nil {
		return err
	}
	callAs := engine.Definition(reg, t).Name
	page.Field("usage", usage(callAs, t), ui.Bold)
	page.Field("source", t.Source, 0)
	if t.Category != "" {
		page.Field("category", string(t.Category), 0)
	}
	page.Field("asks", asks(decider.DecideTool(ctx, t)), 0)
	if d := strings.TrimSpace(t.Description); d != "" {
		page.Title("description")
		page.Block(d)
	}
	page.Params(ctx, t)
	page.Examples(t, callAs)
	return nil
}

// usage returns the command line of a call with the required params.
func usage(callAs string, t *registry.Tool) string {
	line := "toolreg call " + cli.Quote(callAs)
	params := args.Describe(&t.Definition)
	optional, asJSON := false, false
	for _, p := range params {
		if p.Element {
			continue
		}
		if strings.HasPrefix(p.Name, "-") { // it would be read as a flag
			asJSON = asJSON || p.Required
		} else if !p.Required {
			optional = true
		} else if !slices.ContainsFunc(params,
			func(within args.Param) bool { return strings.HasPrefix(within.Name, p.Name+".") }) {
			line += " " + cli.Quote(p.Name) + "=…"
		}
	}
	if asJSON {
		line += " --params JSON"
	}
	if optional || len(params) == 0 && t.TakesParams() {
		line += " [k=v…]"
	}
	return line
}

// asks describes whether a person is asked before the tool runs, and why.
func asks(v policy.Verdict) string {
	word := cmp.Or(map[policy.Decision]string{
		policy.Allow: "no", policy.Ask: "yes", policy.Sandbox: "no, it runs in the sandbox",
		policy.Deny: "never runs",
	}[v.Decision], v.Decision.String())
	line := word + "; " + v.Reason
	if v.Origin != "" {
		line += " (" + v.Origin + ")"
	}
	return line
}

// flagError returns the function that explains an unknown flag that was meant as a
// param.
func flagError(e *cli.Env) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		plain := cmd.Root().FlagErrorFunc()(cmd, err)
		unknown, ok := errors.AsType[*pflag.NotExistError](err)
		named := cmd.Flags().Args()
		if !ok || len(named) == 0 || len(unknown.GetSpecifiedName()) < 2 {
			return plain
		}
		return &cli.UsageError{Err: plain,
			Hint: fmt.Sprintf("params are written without dashes: %s; toolreg call %s --help lists them",
				asParam(unknown.GetSpecifiedName(), e.Argv), named[0])}
	}
}

// asParam returns an unknown flag as the argument k=v that was probably meant, with its value from
// the command line. A flag without a value is true.
func asParam(flag string, argv []string) string {
	key, value := strings.ReplaceAll(flag, "-", "_"), "true"
	for i, arg := range argv {
		if arg == "--" {
			break
		}
		if given, ok := strings.CutPrefix(arg, "--"+flag+"="); ok {
			value = given
			break
		}
		if arg == "--"+flag {
			if next := append(argv, "--")[i+1]; !strings.HasPrefix(next, "-") && !strings.Contains(next, "=") {
				value = next
			}
			break
		}
	}
	return cli.Quote(key + "=" + value)
}
