package callcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

const maxTogether = 8 // how many calls of one response run concurrently

const dialogueHelp = `With --format, stdin is a model's response: the whole response of the API, the
message in it, only the list of calls, or the stream of events as it was received.
Every tool call in it is run, concurrently if all of them only read, and the messages
to append to the conversation are printed, one per line, or nothing if no tool was
called. A call that fails is answered with an error that the model can act on, and
the exit code is 0. Calls of the tools that schema --defer declares (search_tools,
describe_tools, call_tool) are answered too.
With --hold, nothing is run while a call needs an answer that nobody can give now:
the questions are printed as JSON, with exit code 6. Answer them with toolreg
approvals answer, then give the same response again.
Formats: openai, openai-responses, anthropic, bedrock, mistral, gemini,
gemini-interactions, mcp.
`

func runRoundTrip(ctx context.Context, e *cli.Env, t *tracer,
	formatName, preset string, selection *cli.Selection, hold bool) error {
	format, err := provider.LookupCallFormat(formatName)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	if e.IO.InTTY {
		return cli.Usage("call --format reads a model's response from stdin, which is a terminal",
			"toolreg call --format "+format.Name+" < response.json")
	}
	data, err := e.IO.ReadStdin("a response", provider.MaxResponseBytes)
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
	d := &Dialogue{Session: s, Format: format, Declared: selection.Matches, Diagnose: e.IO.Diagnose, Hold: hold,
		Find: func(ctx context.Context, name string, q engine.Query) (engine.Found, error) {
			return e.Engine.Find(ctx, s, name, q, false)
		}}
	if t != nil {
		d.Made = t.call
	}
	messages, err := d.Answer(ctx, turn)
	if held, ok := errors.AsType[*HeldError](err); ok {
		return cmp.Or(e.IO.PrintLine(map[string][]engine.KeptQuestion{"questions": held.Questions}), err)
	}
	for _, message := range messages { // print the answers of calls that ran even if an error stopped the others
		if printErr := e.IO.PrintLine(message); printErr != nil {
			return cmp.Or(err, printErr)
		}
	}
	return err
}

// Dialogue answers responses of a model. The first five fields are required.
type Dialogue struct {
	Session  *engine.Session
	Format   provider.Format
	Declared func(*registry.Tool) bool // whether a tool was declared to the model
	Find     func(context.Context, string, engine.Query) (engine.Found, error)
	Diagnose func([]registry.Diagnostic)
	// Parallel runs all calls of a response concurrently.
	Parallel bool
	// Hold runs no call as long as one needs an answer. The error is then a *HeldError.
	Hold bool
	// Line puts the response in order with others that are answered at the same time. It is nil if
	// there are none.
	Line Line
	// Begin returns the context and the request of a call, given its index in the response,
	// before it is made. May be nil.
	Begin func(context.Context, int, registry.Call) (context.Context, registry.Call)
	// Made receives each call that was answered. May be nil.
	Made func(context.Context, Made)
}

// Line orders the calls of several responses that run at once.
type Line interface {
	// Wait waits until it is the turn of this response.
	Wait(context.Context) error
	// Leave ends this response's turn.
	Leave()
}

// Made is a call that was answered.
type Made struct {
	Index  int    // in the response, or in a batch
	Name   string // as the caller wrote it
	Found  engine.Found
	Params json.RawMessage // as the caller wrote them
	Result registry.Result // as the model reads it
	Err    error
	Took   time.Duration
}

// roundTrip answers one response.
type roundTrip struct {
	*Dialogue
	ran     atomic.Bool     // whether a call has started
	journal *engine.Journal // nil without Hold

	mu   sync.Mutex
	open []engine.KeptQuestion // in scripts, with Hold
}

// Answer runs the calls of a response and returns the messages that answer it. If ctx ends
// after the first call was made, the messages say which calls were not.
func (d *Dialogue) Answer(ctx context.Context, turn *provider.Turn) ([]any, error) {
	r := &roundTrip{Dialogue: d}
	answers, err := r.answer(engine.WithScope(ctx, d.Declared, nil), turn.Calls) // for searches and scripts
	if _, held := errors.AsType[*HeldError](err); held || err != nil && !r.ran.Load() {
		return nil, err
	}
	return turn.Reply(answers), err
}

// planned is a call to run.
type planned struct {
	engine.Found
	name   string
	params json.RawMessage
	index  int
	held   *exec.Held // nil without Hold
}

// answer runs the calls: concurrently if all of them only read, and otherwise
// one after the other in the model's order.
func (r *roundTrip) answer(ctx context.Context, calls []provider.Call) ([]provider.Answer, error) {
	answers := make([]provider.Answer, len(calls))
	var plan []planned
	var searches []int
	reads := true
	for i, c := range calls {
		if c.Fault != "" {
			answers[i] = provider.ErrorAnswer(c.Fault)
			r.made(ctx, Made{Index: i, Name: c.Name, Params: c.Params, Err: errors.New(c.Fault)})
			continue
		}
		if c.Search {
			searches = append(searches, i)
			continue
		}
		p, err := r.findTool(ctx, c)
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("calling %q: %w", c.Name, cause)
		}
		if err != nil {
			answers[i] = r.notFound(ctx, p.Registry, err)
			r.made(ctx, Made{Index: i, Name: p.name, Found: p.Found, Params: p.params, Err: err})
			continue
		}
		reads = reads && p.Tool.Category == registry.CategoryRead
		p.index = i
		plan = append(plan, p)
	}
	if r.Hold {
		r.journal = r.Session.Calls.Journal(ctx, calls)
		if r.Line != nil && !r.Parallel && !reads {
			if err := r.Line.Wait(ctx); err != nil {
				return nil, err
			}
		}
		if err := r.askAll(ctx, calls, plan); err != nil {
			return nil, err
		}
	}
	for _, i := range searches {
		answers[i] = r.search(ctx, i, calls[i])
	}
	together := maxTogether
	if !reads && !r.Parallel {
		together = 1
	} else if r.Line != nil {
		r.Line.Leave()
	}
	if !r.Hold {
		r.callAll(ctx, calls, plan, answers, together)
	} else if err := r.callHeld(ctx, calls, plan, answers, together); err != nil {
		return nil, err
	}
	if cause := context.Cause(ctx); cause != nil {
		return answers, fmt.Errorf("answering the calls: %w", cause)
	}
	return answers, nil
}

// callAll makes calls and sets their answers.
func (r *roundTrip) callAll(ctx context.Context, calls []provider.Call,
	plan []planned, answers []provider.Answer, together int) {
	slots := make(chan struct{}, together)
	var running sync.WaitGroup
	for _, p := range plan {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			answers[p.index] = r.call(ctx, calls[p.index], p)
		})
	}
	running.Wait()
}

func (r *roundTrip) made(ctx context.Context, m Made) {
	if r.Made != nil {
		r.Made(ctx, m)
	}
}

// findTool finds the tool to call; for call_tool, the one that it names.
func (r *roundTrip) findTool(ctx context.Context, c provider.Call) (planned, error) {
	f, err := r.Find(ctx, c.Name, engine.Query{Call: true, Format: r.Format.Name, Reach: true})
	p := planned{Found: f, name: c.Name, params: c.Params}
	if err == nil {
		p.Found, p.name, p.params, err = r.Session.Calls.Resolve(ctx, f, c.Name, c.Params)
	}
	// Tools that search the others belong to no source.
	if err == nil && !r.Declared(p.Tool) && slices.Contains(p.Registry.Tools(), p.Tool) {
		err = &registry.NotFoundError{Name: c.Name, Count: len(p.Registry.Tools())}
	}
	return p, err
}

// search answers a tool search that the provider leaves to its client. The answer cannot
// hold an error message, so errors are printed as warnings.
func (r *roundTrip) search(ctx context.Context, index int, c provider.Call) provider.Answer {
	start := time.Now()
	reg, tools, err := r.Session.Calls.SearchDeclarations(ctx, r.Format, c.Params)
	r.Diagnose(r.Session.Tools.Diagnostics(reg))
	if err != nil {
		r.Diagnose([]registry.Diagnostic{{
			Severity: registry.SeverityWarning, Code: "search_failed",
			Message: "the model's tool search was answered with no tools: " + err.Error(),
		}})
	}
	r.made(ctx, Made{Index: index, Name: c.Name, Params: c.Params, Err: err, Took: time.Since(start)})
	return provider.Answer{Tools: tools, IsError: err != nil}
}

func (r *roundTrip) begin(ctx context.Context, c *provider.Call, p planned) (context.Context, registry.Call) {
	request := registry.Call{Tool: p.name, Params: p.params, ID: c.ID()}
	if r.Begin != nil {
		return r.Begin(ctx, p.index, request)
	}
	return ctx, request
}

func (r *roundTrip) call(ctx context.Context, c provider.Call, p planned) provider.Answer {
	ctx, request := r.begin(ctx, &c, p)
	start := time.Now()
	var result registry.Result
	var err error
	if r.Line != nil && !r.Parallel && p.Tool.Category != registry.CategoryRead {
		err = r.Line.Wait(ctx)
	}
	if err == nil {
		result, err = r.once(p, func() (registry.Result, error) {
			return r.Session.Calls.CallHeld(ctx, p.Found, request, p.held)
		})
		if r.heldInScript(c, err) {
			return provider.Answer{}
		}
		if r.Format.Name == "mcp" {
			result = r.Session.Calls.AnswerMCP(ctx, p.Tool, result)
		} else {
			result = r.Session.Calls.Answer(ctx, p.Tool, result)
		}
	}
	r.made(ctx, Made{p.index, p.name, p.Found, p.params, result, err, time.Since(start)})
	interrupted := err != nil && context.Cause(ctx) != nil
	switch {
	case interrupted && result.ErrorCategory == registry.ErrorCancellation:
		r.ran.Store(true)
		return provider.ErrorAnswer(
			"The user interrupted this call; it may have taken effect in part. Check before you repeat it.")
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
	offered, _, err := r.Session.Offers.Split(ctx, reg, reg.Tools())
	if err != nil {
		return answerOf(registry.Result{}, err)
	}
	offered = slices.DeleteFunc(offered, func(t *registry.Tool) bool { return !r.Declared(t) })
	declared := r.Session.Offers.Declared(ctx, reg, r.Format.Name)
	var near, all []string
	for _, name := range e.Near {
		if t, err := reg.Lookup(name); err == nil && slices.Contains(offered, t) {
			near = append(near, declared[t.Name])
		}
	}
	for _, t := range offered {
		all = append(all, declared[t.Name])
	}
	a := provider.ErrorAnswer(explainUnknown(e.Name, near, all))
	a.Unknown = true
	return a
}

func answerOf(r registry.Result, err error) provider.Answer {
	if err == nil {
		return provider.Answer{Content: r.Content, Structured: r.Structured, IsError: r.IsError}
	}
	a := provider.ErrorAnswer(exec.Explain(err))
	if errors.Is(err, exec.ErrTimeout) { // add the output so far
		a.Content = append(a.Content, r.Content...)
	}
	a.Unknown = errors.Is(err, registry.ErrNotFound)
	return a
}

// maxListed limits how many existing tools an error about an unknown tool lists.
const maxListed = 50

// explainUnknown lists the existing tools, beginning with similar names.
func explainUnknown(name string, near, all []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "There is no tool %q.", name)
	if len(near) > 0 {
		fmt.Fprintf(&b, " Did you mean %s?", strings.Join(near, ", "))
	}
	switch {
	case len(all) == 0:
		b.WriteString(" There are no tools to call.")
	case len(all) > maxListed:
		fmt.Fprintf(&b, " Some of the %d available tools: %s.", len(all), strings.Join(all[:maxListed], ", "))
	default:
		fmt.Fprintf(&b, " The available tools: %s.", strings.Join(all, ", "))
	}
	return b.String()
}
