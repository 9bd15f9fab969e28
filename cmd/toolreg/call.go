package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/declare"
	"github.com/toolreg/toolreg/internal/registry"
)

const paramsHelp = `Params are one JSON object. They come from one of

  --params JSON        the object itself
  --params-file FILE   a file; - is stdin
  k=v …                arguments, over --params or --params-file or alone
  stdin                when it is no terminal and nothing of the above is given

Arguments are typed by the tool's schema:

  limit=3              a number where the schema wants one, else the text
  tags=a tags=b        a list where the schema wants one
  filter:='{"a":1}'    JSON as it stands
  content=@notes.md    the content of a file; @@x is the text @x
  page.size=10         {"page":{"size":10}}

Empty input means {}.
`

type callOptions struct {
	params     string
	paramsFile string
	raw        bool
	outputDir  string
	images     string
	stream     bool
	many       manyCalls
}

func newCallCommand(a *app) *cobra.Command {
	o := &callOptions{}
	cmd := &cobra.Command{
		Use:   "call TOOL [k=v…]",
		Short: "Run one tool",
		Long: `Run one tool and print its result: what the model is to read in a pipe, what a
person is to see on a terminal, all of it with --json.

` + paramsHelp + "\n" + dialogueHelp + "\n" + batchHelp + `
Exit codes: 0, 2, 3 (no such tool), 4 (params), 5 (denied), 6 (nobody to ask),
7 (the tool reported an error), 8 (its source failed), 124 (time limit).`,
		Example: `  toolreg call read_file file_path=go.mod limit=3
  toolreg call read_file < params.json
  toolreg call github__create_issue --params-file issue.json --yes
  toolreg call --format anthropic < response.json
  toolreg call --batch --parallel 4 < calls.jsonl`,
		Args: func(cmd *cobra.Command, argv []string) error {
			if o.many.wanted() {
				return o.many.check(cmd, argv)
			}
			if cmd.Flags().Changed("parallel") {
				return &usageError{err: errors.New("--parallel wants --batch"), hint: "calls of --format run at once by themselves where all of them only read"}
			}
			return argsBetween(1, -1, "a tool, and arguments k=v")(cmd, argv)
		},
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.many.wanted() {
				return o.many.run(cmd.Context(), a)
			}
			return runCall(cmd.Context(), a, o, argv[0], argv[1:])
		},
	}
	f := cmd.Flags()
	o.paramsFlags(f)
	presetFlag(a, f)
	o.many.flags(f)
	f.BoolVar(&o.raw, "raw", false, "write a text or binary result byte for byte (not to a terminal)")
	f.BoolVar(&o.stream, "stream", false, "print output as it comes; with --json an event a line")
	f.StringVar(&o.images, "images", "", "show images on a terminal by this `protocol`: auto, kitty, iterm2, never")
	f.StringVar(&o.outputDir, "output", "", "save images, audio and resources in this `dir` and print their paths")
	return cmd
}

// paramsFlags adds the flags that params come from.
func (o *callOptions) paramsFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.params, "params", "p", "", "params as a JSON `object`")
	f.StringVar(&o.paramsFile, "params-file", "", "`file` that holds the params; - for stdin")
}

func (o *callOptions) checkParams() error {
	if o.params != "" && o.paramsFile != "" {
		return &usageError{err: errors.New("--params and --params-file exclude each other"), hint: "see toolreg help params"}
	}
	return nil
}

func runCall(ctx context.Context, a *app, o *callOptions, name string, argv []string) error {
	if o.raw && a.outTTY {
		return &usageError{err: fmt.Errorf("--raw does not write to a terminal"), hint: "send it to a file or a pipe"}
	}
	if o.raw && a.globals.JSON {
		return &usageError{err: errors.New("--raw and --json exclude each other"), hint: "leave one of them out"}
	}
	if o.stream && (o.raw || o.outputDir != "") {
		return &usageError{err: errors.New("--stream goes with neither --raw nor --output"), hint: "leave one of them out"}
	}
	if err := errors.Join(o.checkParams(), a.chooseImages(o.images)); err != nil {
		return err
	}
	reg, tool, err := a.findToCall(ctx, name)
	if err != nil {
		return err
	}
	params, err := a.params(o, tool, argv)
	if err != nil {
		return a.refusedParams(ctx, tool, err)
	}
	if o.outputDir != "" { // before the tool runs: what it gives would be lost
		if err := os.MkdirAll(o.outputDir, 0o777); err != nil {
			return &usageError{err: fmt.Errorf("--output: %w", err), hint: "name a folder that can be made"}
		}
	}
	a.whole = o.raw
	if err := a.chooseImages(o.images); err != nil { // the settings are known now
		return err
	}
	x, closeTTY, err := a.executor(ctx, reg)
	if err != nil {
		return err
	}
	defer closeTTY()
	show, hide := a.progress(tool.Name)
	call := registry.Call{Tool: name, Params: params, Progress: show}
	print := a.printResult
	if o.stream {
		live := &stream{app: a, showMedia: func(c registry.Content) error { return a.showMedia(ctx, c) }}
		call.Emit, call.Progress, print = live.emit, live.progress(show), live.finish
	}
	result, err := x.Execute(ctx, tool, call)
	hide()
	if err == nil || result.IsError {
		if printErr := print(ctx, o, tool, result); printErr != nil {
			return printErr
		}
	}
	return callError(result, err)
}

// callError turns the outcome of a call into its exit code.
func callError(r registry.Result, err error) error {
	switch {
	case err != nil:
		return err
	case !r.IsError:
		return nil
	case r.ErrorCategory == registry.ErrorTimeout:
		return &reported{code: exitTimeout}
	}
	return &reported{code: exitToolError}
}

// params collects the params of a call from flags, arguments or stdin.
func (a *app) params(o *callOptions, t *registry.Tool, argv []string) ([]byte, error) {
	base, given, err := a.baseParams(o, t, len(argv) > 0)
	if err != nil {
		return nil, err
	}
	params, err := registry.DecodeParams(t.Name, base)
	if err != nil {
		return nil, err
	}
	if given {
		params = restored(t, params)
	}
	if len(argv) > 0 {
		return args.Parse(argv, args.Options{Schema: t.InputSchema, Base: params, ReadFile: a.readFile})
	}
	return params, nil
}

// restored undoes in params what declarations did to the schema, so that a
// model's params fit the tool's own.
func restored(t *registry.Tool, params json.RawMessage) json.RawMessage {
	if bytes.Contains(t.InputSchema, []byte(`"enum"`)) || bytes.Contains(t.InputSchema, []byte(`"const"`)) {
		params = declare.RestoreEnums(t.InputSchema, params)
	}
	if bytes.Contains(params, []byte("null")) {
		params = declare.RestoreOptional(t.InputSchema, params)
	}
	return params
}

// baseParams reads the JSON that params start from; given is false where there
// is none.
func (a *app) baseParams(o *callOptions, t *registry.Tool, haveArgs bool) (data []byte, given bool, err error) {
	switch {
	case o.params != "":
		return []byte(o.params), true, nil
	case o.paramsFile == "-":
		data, err = a.readStdin()
		return data, true, err
	case o.paramsFile != "":
		if data, err = a.readFile(o.paramsFile); err != nil {
			return nil, false, &usageError{err: fmt.Errorf("reading params: %w", err)}
		}
		return data, true, nil
	case haveArgs || a.inTTY || !t.TakesParams():
		return nil, false, nil
	}
	data, err = a.readStdin()
	return data, true, err
}

func (a *app) readStdin() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.in, registry.MaxParamsBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading params from stdin: %w", err)
	}
	return data, nil
}
