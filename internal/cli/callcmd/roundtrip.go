package callcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// maxTogether is how many calls of one response run concurrently.
const maxTogether = 8

const dialogueHelp = `With --format, stdin is a model's response: the whole response of the API, the
message in it, or only the list of calls. Every tool call in it is run, concurrently
if all of them only read, and the messages to append to the conversation are printed,
one per line, or nothing if no tool was called. A call that fails is answered with
an error that the model can act on, and the exit code is 0. Calls of the tools that
schema --defer declares (search_tools, describe_tools, call_tool) are answered too.
Formats: openai, openai-responses, anthropic, bedrock, mistral, gemini, mcp.
`

// runRoundTrip answers the tool calls in a model's response.
func runRoundTrip(ctx context.Context, e *cli.Env, t *tracer, formatName, preset string) error {
	format, err := provider.LookupCallFormat(formatName)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if e.IO.InTTY {
		return &cli.UsageError{Err: errors.New("call --format reads a model's response from stdin, which is a terminal"), Hint: "toolreg call --format " + format.Name + " < response.json"}
	}
	data, err := e.IO.ReadStdin()
	if err != nil {
		return err
	}
	turn, err := format.Decode(data)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if len(turn.Calls) == 0 {
		return nil
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: preset}})
	if err != nil {
		return err
	}
	r := &roundTrip{env: e, session: s, trace: t, format: format.Name}
	answers, err := r.answer(ctx, turn.Calls)
	if err != nil && !r.ran.Load() {
		return err
	}
	for _, message := range turn.Reply(answers) { // print the answers of calls that ran even if an error stopped the others
		if printErr := e.IO.PrintLine(message); printErr != nil {
			return cmp.Or(err, printErr)
		}
	}
	return err
}

// roundTrip answers the calls of one response.
type roundTrip struct {
	env     *cli.Env
	session *engine.Session
	trace   *tracer
	format  string
	ran     atomic.Bool // whether a call has started
}

// planned is a call to run.
type planned struct {
	engine.Found
	name   string
	params json.RawMessage
	index  int
}

// answer runs the calls: concurrently if all of them only read, and otherwise
// one after the other in the model's order.
func (r *roundTrip) answer(ctx context.Context, calls []provider.Call) ([]provider.Answer, error) {
	answers := make([]provider.Answer, len(calls))
	var plan []planned
	together := maxTogether
	for i, c := range calls {
		if c.Fault != "" {
			answers[i] = provider.ErrorAnswer(c.Fault)
			continue
		}
		if c.Search {
			answers[i] = r.search(ctx, c)
			continue
		}
		p, err := r.find(ctx, c)
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("calling %q: %w", c.Name, cause)
		}
		if err != nil {
			answers[i] = r.notFound(ctx, p.Registry, err)
			r.trace.call(ctx, p.name, p.Found, p.params, registry.Result{}, err, 0)
			continue
		}
		if p.Tool.Category != registry.CategoryRead {
			together = 1
		}
		p.index = i
		plan = append(plan, p)
	}
	slots := make(chan struct{}, together)
	var running sync.WaitGroup
	for _, p := range plan {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			answers[p.index] = r.call(ctx, p)
		})
	}
	running.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return answers, fmt.Errorf("answering the calls: %w", cause)
	}
	return answers, nil
}

// find finds the tool to call; for call_tool, the one that it names.
func (r *roundTrip) find(ctx context.Context, c provider.Call) (planned, error) {
	f, err := r.env.Engine.Find(ctx, r.session, c.Name, engine.Query{Call: true, Format: r.format, Reach: true}, false)
	p := planned{Found: f, name: c.Name, params: c.Params}
	if err == nil {
		p.Found, p.name, p.params, err = r.session.Resolve(ctx, f, c.Name, c.Params)
	}
	return p, err
}

// search answers a tool search that the provider leaves to its client. The answer cannot
// hold an error message, so errors are printed as warnings.
func (r *roundTrip) search(ctx context.Context, c provider.Call) provider.Answer {
	format, err := provider.Lookup(r.format)
	if err != nil {
		return answerOf(registry.Result{}, err)
	}
	reg, tools, err := r.session.SearchDeclarations(ctx, format, c.Params)
	r.env.IO.Diagnose(r.session.Diagnostics(reg))
	if err != nil {
		r.env.IO.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "search_failed", Message: "the model's tool search was answered with no tools: " + err.Error()})
	}
	return provider.Answer{Tools: tools, IsError: err != nil}
}

// call makes one call and answers it.
func (r *roundTrip) call(ctx context.Context, p planned) provider.Answer {
	start := time.Now()
	result, err := r.session.CallJSON(ctx, p.Found, p.name, p.params)
	r.trace.call(ctx, p.name, p.Found, p.params, result, err, time.Since(start))
	interrupted := err != nil && context.Cause(ctx) != nil
	switch {
	case interrupted && result.ErrorCategory == registry.ErrorCancellation:
		r.ran.Store(true)
		return provider.ErrorAnswer("The user interrupted this call; it may have taken effect in part. Check before you repeat it.")
	case interrupted:
		return provider.ErrorAnswer("The user interrupted the calls before this one was run.")
	}
	r.ran.Store(true)
	a := answerOf(result, err)
	a.Tool, a.Typed = p.name, p.Tool.DeclaredOutputSchema() != nil
	return a
}

// notFound answers a call of an unknown tool with the declared tools, by their
// declared names.
func (r *roundTrip) notFound(ctx context.Context, reg *registry.Registry, err error) provider.Answer {
	e, ok := errors.AsType[*registry.NotFoundError](err)
	if !ok || e.Hidden != nil || errors.Is(err, registry.ErrSourceFailed) {
		return answerOf(registry.Result{}, err)
	}
	offered, _, err := r.session.Offered(ctx, reg, reg.Tools())
	if err != nil {
		return answerOf(registry.Result{}, err)
	}
	declared := r.session.Declared(reg, r.format)
	var near, all []string
	for _, name := range e.Near {
		if slices.ContainsFunc(offered, func(t *registry.Tool) bool { return t.Name == name }) {
			near = append(near, declared[name])
		}
	}
	for _, t := range offered {
		all = append(all, declared[t.Name])
	}
	a := provider.ErrorAnswer(explainUnknown(e.Name, near, all))
	a.Unknown = true
	return a
}
