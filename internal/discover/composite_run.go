package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Discover returns the tools, including quarantined ones. It runs nothing and
// never fails.
func (c *Composites) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	tools := make([]registry.Tool, len(c.list))
	var diags []registry.Diagnostic
	for i, one := range c.list {
		t := &tools[i]
		t.Definition, t.Identity, t.Declared, t.Quarantine = one.definition, one.identity(),
			one.named.Origin.String(), one.err()
		t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			ctx, err := beginRun(ctx, one)
			switch {
			case err != nil:
				return registry.Result{}, err
			case one.file != "":
				return call.Steps.Script(ctx, one.file, one.script, call)
			}
			return c.run(ctx, one, call)
		}
		for _, p := range one.problems {
			diags = append(diags, registry.Diagnostic{Severity: registry.SeverityError, Code: "composite_invalid",
				Source: registry.SourceComposite, Tool: one.named.Name, Message: p.String()})
		}
	}
	return tools, diags, nil
}

// stepTrace is the outcome of one step, an entry of "steps" in the _meta of a
// composite's result.
type stepTrace struct {
	Tool       string `json:"tool"`
	State      string `json:"state"` // ok, failed, skipped
	DurationMs int64  `json:"durationMs"`
	Error      string `json:"error,omitempty"`
}

const (
	stepOK      = "ok"
	stepFailed  = "failed"
	stepSkipped = "skipped"
)

// openRuns is what nested composites share, the context value of openRunsKey.
type openRuns struct {
	open []*composite  // those that are running, outermost first
	left *atomic.Int64 // how many more steps may run; nil until one with steps runs
}

type openRunsKey struct{}

type compositeRun struct {
	*composite
	asked   registry.Call // call of the composite
	params  any
	context any
	steps   []any // the steps so far, in the form for expressions
	trace   []stepTrace
	done    []registry.Result // results of successful steps
}

// beginRun returns the context of a run of a composite. A composite that is running already
// calls itself, from a script or by a name that findCycles cannot resolve, such as one from
// an override.
func beginRun(ctx context.Context, one *composite) (context.Context, error) {
	runs, _ := ctx.Value(openRunsKey{}).(openRuns)
	if slices.Contains(runs.open, one) {
		return nil, &document.Error{Problems: []document.Problem{one.problem("", "it calls itself again", noCycles)}}
	}
	runs.open = append(slices.Clip(runs.open), one)
	if one.file == "" && runs.left == nil {
		runs.left = new(atomic.Int64)
		runs.left.Store(maxRun)
	}
	return context.WithValue(ctx, openRunsKey{}, runs), nil
}

func (c *Composites) run(ctx context.Context, one *composite, call registry.Call) (registry.Result, error) {
	start := time.Now()
	r := &compositeRun{composite: one, asked: call, steps: []any{}}
	var err error
	if r.params, err = jq.Decode(call.Params); err != nil {
		return registry.Result{}, fmt.Errorf("reading the params of composite %q: %w", one.named.Name, err)
	}
	if r.context, err = jq.Decode(c.opts.Context); err != nil {
		return registry.Result{}, fmt.Errorf("reading the context: %w", err)
	}
	result, err := r.all(ctx)
	if err != nil && ctx.Err() == nil {
		return registry.Result{}, err
	}
	result.Duration = time.Since(start)
	result.Meta, _ = json.Marshal(map[string]any{"steps": r.trace}) // cannot fail: strings and numbers
	result.Summary = r.summary()
	return result, err
}

// all runs the steps in order. If ctx is done, the result says which steps have
// run.
func (r *compositeRun) all(ctx context.Context) (registry.Result, error) {
	for i := range r.composite.steps {
		s := &r.composite.steps[i]
		failed, err := r.step(ctx, i, s)
		if err != nil {
			if noSuchTool(err) {
				return registry.Result{}, &document.Error{Problems: []document.Problem{
					r.problem(fmt.Sprintf("/steps/%d/tool", i), err.Error()+r.before(), ""),
				}}
			}
			where := fmt.Sprintf("step %d of %d (%s)%s", i+1, len(r.composite.steps), s.tool, r.before())
			err = fmt.Errorf("composite %q, %s: %w", r.named.Name, where, err)
			if ctx.Err() != nil {
				return registry.TextResult("it was stopped in " + where), err
			}
			return registry.Result{}, err
		}
		if failed != nil && !s.continueOnError {
			step := fmt.Sprintf("step %d of %d (%s) failed: ", i+1, len(r.composite.steps), s.tool)
			return nameStep(*failed, step), nil
		}
	}
	if r.result == nil {
		return joinResults(r.done), nil
	}
	v, err := r.result.Value(ctx, r.view())
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return registry.Result{}, cause
		}
		return registry.ErrorResult(registry.ErrorExecution,
			fmt.Sprintf("the result of composite %q, %q, failed: %s", r.named.Name, r.result.Text, err)), nil
	}
	text, structured, err := jq.Text(v)
	out := registry.TextResult(text)
	out.Structured = structured
	return out, err
}

// nameStep adds the step's name to the text of its failed result.
func nameStep(failed registry.Result, step string) registry.Result {
	parts := failed.Content
	if len(parts) == 0 || parts[0].Type != registry.ContentText {
		parts = append([]registry.Content{registry.TextContent("")}, parts...)
	}
	parts = slices.Clone(parts)
	parts[0].Text = step + cmp.Or(parts[0].Text, failed.Summary)
	failed.Content = parts
	if failed.Display.Text != "" {
		failed.Display.Text = step + failed.Display.Text
	}
	return failed
}

// joinResults combines the results of several steps: all their content, with an
// empty line between texts. The result of a single step is unchanged. If no
// step succeeded, the result is empty and the trace says why.
func joinResults(results []registry.Result) registry.Result {
	if len(results) == 1 {
		return results[0]
	}
	var out registry.Result
	for _, r := range results {
		out.Locations = append(out.Locations, r.Locations...)
		out.Truncated, out.Asked = out.Truncated || r.Truncated, out.Asked || r.Asked
		for _, c := range r.Content {
			if last := len(out.Content) - 1; last >= 0 && isPlainText(c) && isPlainText(out.Content[last]) {
				out.Content[last].Text = strings.TrimRight(out.Content[last].Text, "\n") + "\n\n" + c.Text
				continue
			}
			out.Content = append(out.Content, c)
		}
	}
	return out
}

// isPlainText reports whether a part has text and nothing else.
func isPlainText(c registry.Content) bool {
	return c.Type == registry.ContentText && c.Annotations == nil && c.Meta == nil
}

// before lists the steps that have already run, for the error of a later one.
func (r *compositeRun) before() string {
	var done []string
	for _, t := range r.trace {
		if t.State != stepSkipped {
			done = append(done, t.Tool)
		}
	}
	if len(done) == 0 {
		return ""
	}
	return " after " + strings.Join(done, ", ")
}

// step runs one step. failed is its result if it failed; an error ends the
// whole call.
func (r *compositeRun) step(ctx context.Context, i int, s *step) (failed *registry.Result, err error) {
	start := time.Now()
	wanted, result, err := r.attempt(ctx, i, s)
	t := stepTrace{Tool: s.tool, State: stepOK, DurationMs: time.Since(start).Milliseconds()}
	switch {
	case err != nil && endsComposite(ctx, err):
		return nil, err
	case err != nil:
		sofar := result.Content
		result = registry.ErrorResult(failureCategory(err), err.Error())
		result.Content = append(result.Content, sofar...)
	case !wanted:
		t.State, t.DurationMs = stepSkipped, 0
	}
	if result.IsError {
		t.State, t.Error = stepFailed, firstLine([]byte(cmp.Or(result.Summary, result.Text())))
		failed = &result
	} else if wanted {
		r.done = append(r.done, result)
	}
	r.trace = append(r.trace, t)
	r.steps = append(r.steps, stepView(t, &result))
	return failed, nil
}

// attempt evaluates the condition and the params of a step, and makes its call.
func (r *compositeRun) attempt(ctx context.Context, i int, s *step) (wanted bool, result registry.Result, err error) {
	if s.when != nil {
		wanted, err := jq.Holds(s.when.Value(ctx, r.view()))
		if err != nil {
			return false, result, fmt.Errorf("its if %q: %w", s.when.Text, err)
		}
		if !wanted {
			return false, result, nil
		}
	}
	params := r.asked.Params
	if s.params != nil {
		v, err := s.params.Value(ctx, r.view())
		if err != nil {
			return true, result, fmt.Errorf("its params %q: %w", s.params.Text, err)
		}
		if _, ok := v.(map[string]any); !ok {
			return true, result, fmt.Errorf("its params %q return %s, not an object", s.params.Text, gojq.TypeOf(v))
		}
		if params, err = gojq.Marshal(v); err != nil {
			return true, result, fmt.Errorf("its params %q: %w", s.params.Text, err)
		}
	}
	if ctx.Value(openRunsKey{}).(openRuns).left.Add(-1) < 0 {
		return true, result, fmt.Errorf("%w of %d", errTooManySteps, maxRun)
	}
	if r.asked.Progress != nil {
		n := len(r.composite.steps)
		r.asked.Progress(registry.Progress{Done: float64(i), Total: float64(n),
			Message: fmt.Sprintf("step %d of %d: %s", i+1, n, s.tool)})
	}
	result, err = r.asked.Steps.Step(ctx, s.tool, params)
	return true, result, err
}

// errTooManySteps reports that nested composites ran too many steps.
var errTooManySteps = errors.New("the call reached the limit on steps")

// endsComposite reports whether an error ends the whole composite even with
// continueOnError: the call is over or was denied, or the settings are wrong.
func endsComposite(ctx context.Context, err error) bool {
	_, wrong := errors.AsType[*document.Error](err)
	return wrong || ctx.Err() != nil || errors.Is(err, registry.ErrDenied) ||
		errors.Is(err, registry.ErrNeedsConfirmation) || errors.Is(err, registry.ErrNotFound) ||
		errors.Is(err, registry.ErrSourceFailed) || errors.Is(err, errTooManySteps)
}

// noSuchTool reports whether a step's tool does not exist in any source and all
// sources succeeded, which is a mistake in the settings.
func noSuchTool(err error) bool {
	e, ok := errors.AsType[*registry.NotFoundError](err)
	return ok && e.Hidden == nil && !errors.Is(err, registry.ErrSourceFailed)
}

// failureCategory returns the stage in which a step without a result failed.
func failureCategory(err error) registry.ErrorCategory {
	if _, ok := errors.AsType[*registry.ArgsError](err); ok {
		return registry.ErrorValidation
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return registry.ErrorTimeout
	}
	return registry.ErrorExecution
}

// view returns the input for an expression. jq may modify its input, so shared
// values are copied.
func (r *compositeRun) view() any {
	return map[string]any{"params": copyValue(r.params), "steps": copyValue(r.steps), "context": copyValue(r.context)}
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = copyValue(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = copyValue(x)
		}
		return out
	}
	return v
}

// stepView returns a step in the form for expressions.
func stepView(t stepTrace, result *registry.Result) any {
	out := map[string]any{"tool": t.Tool, "state": t.State, "ok": t.State == stepOK, "text": result.Text()}
	if t.Error != "" {
		out["error"] = cmp.Or(result.Text(), result.Summary)
	}
	if v, err := jq.Decode(result.Structured); err == nil && v != nil {
		out["structuredContent"] = v
	}
	if raw, err := json.Marshal(result.Content); err == nil && len(result.Content) > 0 {
		if v, err := jq.Decode(raw); err == nil {
			out["content"] = v
		}
	}
	return out
}

func (r *compositeRun) summary() string {
	parts := make([]string, len(r.trace))
	for i, t := range r.trace {
		parts[i] = t.Tool + " " + t.State
	}
	return strings.Join(parts, ", ")
}
