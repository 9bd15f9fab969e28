// Package runcmd implements the command run, which runs a script that calls tools.
package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
)

type options struct {
	params cli.ParamsOptions
	preset string
	check  bool
}

// New returns the command run.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "run FILE|- [k=v…]",
		Short: "Run a script that calls tools",
		Long: `Run a script that calls tools. Print the lines that it prints, then its result: text
as it is, everything else as JSON. Scripts are written in Starlark, a small Python
without files, network, clock or imports:

  def main(params):
      text = tools.read_file(file_path = params["file"])
      return len(text.splitlines())

tools.NAME(param = value) returns the structured result of a tool, else its text,
and ends the script if the call fails. call(name, {param: value}) returns a value
with ok, value, text, category and error instead. parallel(f, list) runs f for all
items at once. search(words) and describe(name) find tools. json and math are
modules. The result is what main(params) returns, else the variable result.

Every call is decided on, asked about and logged as one of its own. If one needs an
answer and nobody can be asked, the script ends with exit code 6; run it again after
toolreg approvals answer, and it continues without repeating the calls it has made.

k=v is text, k:=JSON is JSON. With - the script is read from stdin.

If a call ends the script, the exit code is that of toolreg call.

Exit codes: 0, 2 (it cannot be parsed), 3, 4, 5, 6, 7 (it failed, or reached a
limit), 8, 9 (--check found mistakes), 124 (time limit).`,
		Example: `  toolreg run report.star file=go.mod
  toolreg run sync.star --params-file params.json --json
  toolreg run --check sync.star
  echo 'result = tools.glob(pattern = "*.go")' | toolreg run -`,
		ValidArgsFunction: complete.Files,
		Args:              cli.ArgsBetween(1, -1, "the file of the script, or -"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			return run(cmd.Context(), e, o, argv[0], argv[1:])
		},
	}
	cli.PresetFlag(cmd, &o.preset)
	o.params.FileFlag(cmd)
	cmd.Flags().BoolVar(&o.check, "check", false, "call nothing, and report unknown tools and wrong params")
	return cmd
}

const maxScript = 4 << 20 // the maximum size of a script in bytes

func run(ctx context.Context, e *cli.Env, o *options, file string, argv []string) error {
	given, fromStdin := o.params.Given()
	switch {
	case file == "-" && fromStdin:
		return cli.Usage("the script and the params cannot both come from stdin", "give one of them as a file")
	case o.check && (len(argv) > 0 || given):
		return cli.Usage("--check takes no params", "it runs nothing")
	case file == "-" && e.IO.InTTY:
		return cli.Usage("the script is read from stdin, which is a terminal", "toolreg run - < FILE")
	}
	text, err := readScript(ctx, e, file)
	if err != nil {
		return err
	}
	params, err := e.Config.Params(ctx, &o.params,
		&registry.Tool{Definition: registry.Definition{Name: engine.RunScript}}, argv)
	if err != nil {
		return &registry.Failure{Text: err.Error(), Help: "see toolreg run --help", Cause: err}
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: o.preset}})
	if err != nil {
		return err
	}
	name := filepath.Base(file)
	if file == "-" {
		name = "stdin"
	}
	if o.check {
		return checkScript(ctx, e, s, name, text)
	}
	f := s.Scripts.Tool(ctx, name)
	if params, err = json.Marshal(map[string]any{"script": string(text), "params": json.RawMessage(params)}); err != nil {
		return err
	}
	show, hide := e.IO.Screen.Progress(name, "script")
	result, err := s.Calls.Call(ctx, f, registry.Call{Tool: f.Tool.Name, Params: params, Progress: show})
	hide()
	return printLines(e, f.Tool, result, err)
}

func readScript(ctx context.Context, e *cli.Env, file string) (text []byte, err error) {
	if text, err = e.Config.ReadInput(ctx, file, "the script", maxScript); err != nil {
		err = &cli.UsageError{Err: fmt.Errorf("reading the script: %w", err)}
	} else if len(text) == 0 {
		err = cli.Usage("the script is empty", "")
	}
	return text, err
}

func printLines(e *cli.Env, t *registry.Tool, result registry.Result, err error) error {
	if ended, ok := errors.AsType[*exec.ScriptError](err); ok && !e.IO.JSON && ended.Lines != "" {
		if _, writeErr := io.WriteString(e.IO.Results(), ended.Lines); writeErr != nil {
			return writeErr
		}
	}
	if err != nil && !result.IsError {
		return err
	}
	switch {
	case e.IO.JSON:
		if printErr := e.IO.PrintJSON(callcmd.NewDocument(t, result)); printErr != nil {
			return printErr
		}
	case result.IsError && err == nil:
		return printFailure(e, result)
	default:
		if printErr := cli.WriteResult(e.IO.Results(), result); printErr != nil {
			return printErr
		}
	}
	return exec.ResultError(result, err)
}

// printFailure prints the lines of a script that failed, and returns the failure.
func printFailure(e *cli.Env, result registry.Result) error {
	last := len(result.Content) - 1
	message := result.Content[last].Text
	result.Content = result.Content[:last]
	if err := cli.WriteResult(e.IO.Results(), result); err != nil {
		return err
	}
	return fmt.Errorf("%s%w", message, &silent{exec.ToolError{Category: result.ErrorCategory}})
}

// silent is the error of a tool whose message was printed before.
type silent struct{ tool exec.ToolError }

func (*silent) Error() string   { return "" }
func (s *silent) Unwrap() error { return &s.tool }

// Document is the JSON of run --check.
type Document struct {
	Findings []engine.Finding `json:"findings"` // in the order of the script
}

func checkScript(ctx context.Context, e *cli.Env, s *engine.Session, name string, text []byte) error {
	findings, reg, err := s.Scripts.Check(ctx, name, text)
	if reg != nil {
		e.IO.DiagnoseExcept(s.Tools.Diagnostics(reg), err)
	}
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&lines, "%s: %s\n", f.At, f.Message)
	}
	if err := e.IO.PrintText(Document{findings}, lines.String()); err != nil {
		return err
	}
	if len(findings) > 0 {
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	return nil
}
