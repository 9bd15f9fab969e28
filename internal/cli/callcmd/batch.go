package callcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

const batchHelp = `With --batch, stdin has one call per line, {"id","name","params"} (or
"tool" and "arguments"), and a line is printed for each call as it finishes:
{"id","name"} with the fields of call --json, or with "error".
For a line that cannot be parsed, "error" is printed with its line number.
--parallel N runs N calls at once; by default they run one after the other, and the
output has the order of the input. The exit code is that of the first line, in the
order of the input, whose call did not succeed, and 0 if all did.
`

type batchLine struct {
	ID     json.RawMessage `json:"id"`
	Name   string          `json:"name"`
	Params json.RawMessage `json:"params"`

	Tool      string          `json:"tool"`      // read for name
	Arguments json.RawMessage `json:"arguments"` // read for params
}

// batchHead is the beginning of a line of output.
type batchHead struct {
	ID   json.RawMessage `json:"id,omitempty"`   // as in the input
	Name string          `json:"name,omitempty"` // as in the input
	Line int             `json:"line,omitempty"` // number of an input line that cannot be read
}

// batchResult is a line of output for a call that was made.
type batchResult struct {
	batchHead
	Document
}

// batchError is a line of output for a call that could not be made.
type batchError struct {
	batchHead
	Error cli.ErrorBody `json:"error"`
}

func runBatch(ctx context.Context, e *cli.Env, t *tracer, parallel int, preset string) error {
	if parallel < 1 {
		return &cli.UsageError{Err: fmt.Errorf("--parallel %d: must be 1 or more", parallel)}
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: preset}})
	if err != nil {
		return err
	}
	b := &batch{engine: e.Engine, ios: e.IO, session: s, trace: t}
	slots := make(chan struct{}, parallel)
	var running sync.WaitGroup
	defer running.Wait()
	lines := jsonx.NewStream(e.IO.In, registry.MaxParamsBytes)
	for context.Cause(ctx) == nil {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) || context.Cause(ctx) != nil {
			break
		}
		if err != nil && !errors.Is(err, jsonx.ErrLongLine) {
			return fmt.Errorf("reading the batch: %w", err)
		}
		slots <- struct{}{}
		call := b.prepare(ctx, lines.Number(), line)
		running.Go(func() {
			defer func() { <-slots }()
			b.runCall(ctx, call)
		})
	}
	running.Wait()
	if cause := context.Cause(ctx); cause != nil && (b.exit == 0 || cause != cli.ErrReaderGone) {
		return fmt.Errorf("running the batch: %w", cause)
	}
	if b.failed != nil || b.exit == 0 {
		return b.failed
	}
	return &cli.ExitError{Code: b.exit}
}

// batch runs the calls of one session and prints their outcomes.
type batch struct {
	engine  *cli.Engine
	ios     *cli.IO
	session *engine.Session
	trace   *tracer
	mu      sync.Mutex
	failed  error // the first error of printing
	line    int   // of the first call, in the order of the input, that did not succeed; 0 means none
	exit    int   // its exit code
}

// batchCall is a parsed line. If err is not nil, it cannot run.
type batchCall struct {
	number int // of its line
	head   batchHead
	found  engine.Found
	tool   string // the tool to call; for call_tool, the one that it names
	params json.RawMessage
	err    error
}

// prepare parses a line and finds its tool; data is nil if the line is too long. It is not safe
// for concurrent use.
func (b *batch) prepare(ctx context.Context, number int, data []byte) batchCall {
	bad := func(id json.RawMessage, format string, args ...any) batchCall {
		err := &cli.UsageError{Err: fmt.Errorf("line %d of the batch: %w", number, fmt.Errorf(format, args...))}
		return batchCall{number: number, head: batchHead{ID: id, Line: number}, err: err}
	}
	if data == nil {
		return bad(nil, "it is larger than the limit of %d bytes", registry.MaxParamsBytes)
	}
	if err := registry.CheckJSON(data); err != nil {
		return bad(nil, "it is not valid JSON: %s", strings.Replace(err.Message, "line 1, column", "column", 1))
	}
	var line batchLine
	err := json.Unmarshal(data, &line)
	line.Name = cmp.Or(line.Name, line.Tool)
	if jsonx.IsNull(line.Params) {
		line.Params = line.Arguments
	}
	if err != nil || data[0] != '{' || line.Name == "" {
		return bad(line.ID, `it is not {"id":…,"name":"TOOL","params":{…}}`)
	}
	if line.Params == nil {
		if other := provider.MisplacedParams(maps.Collect(jsonx.Members(data)), "params"); other != "" {
			return bad(line.ID, `it has %q instead of "params"`, other)
		}
	}
	c := batchCall{number: number, head: batchHead{ID: line.ID, Name: line.Name}, tool: line.Name, params: line.Params}
	c.found, c.err = b.engine.Find(ctx, b.session, line.Name, engine.Query{Call: true, Reach: true}, false)
	if c.err == nil {
		c.found, c.tool, c.params, c.err = b.session.Calls.Resolve(ctx, c.found, line.Name, line.Params)
	}
	return c
}

func (b *batch) runCall(ctx context.Context, c batchCall) {
	var result registry.Result
	start, err := time.Now(), c.err
	if err == nil {
		result, err = b.session.Calls.CallJSON(ctx, c.found, registry.Call{Tool: c.tool, Params: c.params})
		result = b.session.Calls.Answer(ctx, c.found.Tool, result)
	}
	if err != nil && context.Cause(ctx) != nil && result.ErrorCategory != registry.ErrorCancellation {
		return // the whole batch was canceled before this call ran
	}
	b.trace.call(ctx,
		Made{
			Name:   cmp.Or(c.tool, fmt.Sprintf("line %d", c.head.Line)),
			Found:  c.found,
			Params: c.params,
			Result: result,
			Err:    err,
			Took:   time.Since(start),
		})
	b.printResult(ctx, c, result, err)
}

func (b *batch) printResult(ctx context.Context, c batchCall, r registry.Result, err error) {
	var line any
	if !HasResult(r, err) {
		line = batchError{c.head, cli.NewErrorBody(ctx, err)}
	} else {
		line = batchResult{c.head, NewDocument(c.found.Tool, r)}
	}
	exit := 0
	if err := exec.ResultError(r, err); err != nil {
		exit = cli.NewErrorBody(ctx, err).Exit
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if exit != 0 && (b.line == 0 || c.number < b.line) {
		b.line, b.exit = c.number, exit
	}
	if err := b.ios.PrintLine(line); err != nil && b.failed == nil {
		b.failed = err
	}
}

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

func (m *stdinCalls) isSet() bool { return m.format != "" || m.batch }

// checkFlags returns an error for flags and arguments that apply only to a single
// call.
func (m *stdinCalls) checkFlags(cmd *cobra.Command, argv []string) error {
	name := "--batch"
	if m.format != "" {
		name = "--format"
	}
	refuse := func(what string) error {
		return cli.Usage(fmt.Sprintf("%s and %s cannot be used together", name, what),
			name+" takes every call from stdin; see toolreg call --help")
	}
	if len(argv) > 0 {
		return refuse(fmt.Sprintf("the tool %q", argv[0]))
	}
	others := []string{"params", "params-file", "raw", "output", "stream", "detach"}
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

func completeFormats(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, f := range provider.CallFormats() {
		out = append(out, f.Name)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
