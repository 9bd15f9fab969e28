package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// parseComposites parses the composites of a settings file.
func parseComposites(t testing.TB, text string, o CompositeOptions) (*Composites, error) {
	t.Helper()
	dir := t.TempDir()
	path := writeFile(t, dir, "s.yaml", text)
	s, _, err := settings.Load(settings.Options{Dir: dir, Root: dir, Files: []string{path}, NoUser: true, NoProject: true, SystemDir: filepath.Join(dir, "none")})
	if err != nil {
		t.Fatal(err)
	}
	c := ParseComposites(t.Context(), s.RawNamed("composites"), o)
	var problems []document.Problem
	for _, one := range c.list {
		problems = append(problems, one.problems...)
	}
	return c, document.NewError(problems)
}

// recorder records and answers the calls of steps: "echo" returns its params,
// "fail" a failed result, "json" structured content, "no" a denial.
type recorder struct{ calls []string }

func (r *recorder) call(_ context.Context, tool string, params json.RawMessage) (registry.Result, error) {
	r.calls = append(r.calls, tool+string(params))
	switch tool {
	case "fail":
		return registry.ErrorResult(registry.ErrorTimeout, "it failed\nbadly"), nil
	case "mute":
		return registry.Result{IsError: true, Summary: "mute failed with no content"}, nil
	case "slow":
		return registry.ErrorResult(registry.ErrorTimeout, "so far"), errors.New("time limit reached")
	case "json":
		return registry.Result{Structured: params, Meta: json.RawMessage(`{"own":1}`)}, nil
	case "no":
		return registry.Result{}, fmt.Errorf("%q: %w", tool, registry.ErrDenied)
	case "args":
		return registry.Result{}, registry.Invalid(tool, "/x", "is wrong")
	case "missing":
		return registry.Result{}, &registry.NotFoundError{Name: tool, Count: 3}
	case "down":
		return registry.Result{}, fmt.Errorf("%w: %w", registry.ErrSourceFailed, &registry.NotFoundError{Name: tool})
	case "cannot":
		return registry.Result{}, errors.New("no wire")
	}
	return registry.TextResult(string(params)), nil
}

// stepFunc makes the calls of steps.
type stepFunc func(ctx context.Context, tool string, params json.RawMessage) (registry.Result, error)

func (f stepFunc) Step(ctx context.Context, tool string, params json.RawMessage) (registry.Result, error) {
	return f(ctx, tool, params)
}

func (f stepFunc) Script(context.Context, string, []byte, registry.Call) (registry.Result, error) {
	return registry.Result{}, errors.New("no scripts")
}

// runOne parses composites and calls the first.
func runOne(t *testing.T, text, params string) (registry.Result, []string, error) {
	t.Helper()
	r := &recorder{}
	c, err := parseComposites(t, "composites:\n  one:\n"+text, CompositeOptions{Context: json.RawMessage(`{"channel":"cli"}`)})
	if err != nil {
		t.Fatal(err)
	}
	tools, _, _ := c.Discover(t.Context())
	result, err := tools[0].Run(t.Context(), registry.Call{Tool: "one", Params: json.RawMessage(params), Steps: stepFunc(r.call)})
	return result, r.calls, err
}

func TestStepsUseEarlierResults(t *testing.T) {
	result, calls, err := runOne(t, `
    steps:
      - {tool: echo, params: '{a: .params.n, ch: .context.channel}'}
      - {tool: json, params: '.steps[0].text | fromjson | {b: .a}'}
      - {tool: echo, if: '.steps[1].structuredContent.b == 0'}
      - {tool: echo}
    result: '{n: .steps[1].structuredContent.b, skipped: .steps[2].state, kinds: [.steps[0].content[].type]}'
`, `{"n": 12345678901234567890}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`echo{"a":12345678901234567890,"ch":"cli"}`, `json{"b":12345678901234567890}`, `echo{"n": 12345678901234567890}`}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got, want := string(result.Structured), `{"kinds":["text"],"n":12345678901234567890,"skipped":"skipped"}`; got != want || result.Text() != want {
		t.Errorf("result %s, text %s, want %s", got, result.Text(), want)
	}
	if result.Summary != "echo ok, json ok, echo skipped, echo ok" {
		t.Errorf("summary %q", result.Summary)
	}
	var meta struct{ Steps []stepTrace }
	if err := json.Unmarshal(result.Meta, &meta); err != nil || len(meta.Steps) != 4 || meta.Steps[2].State != "skipped" {
		t.Errorf("meta %s: %v", result.Meta, err)
	}
}

func TestCompositeOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		calls   int
		want    string // text of the result
		isError bool
		err     error
		says    string // in the error
	}{
		"last step":                         {text: "    steps: [{tool: echo, params: '{a: 1}'}]\n", calls: 1, want: `{"a":1}`},
		"text":                              {text: "    steps: [{tool: echo}]\n    result: '\"plain\"'\n", calls: 1, want: "plain"},
		"failure stops":                     {text: "    steps: [{tool: fail}, {tool: echo}]\n", calls: 1, want: "step 1 of 2 (fail) failed: it failed\nbadly", isError: true},
		"failure without content":           {text: "    steps: [{tool: mute}]\n", calls: 1, want: "step 1 of 1 (mute) failed: mute failed with no content", isError: true},
		"failure without content, seen":     {text: "    steps: [{tool: mute, continueOnError: true}]\n    result: '.steps[0].error'\n", calls: 1, want: "mute failed with no content"},
		"time limit":                        {text: "    steps: [{tool: slow}]\n", calls: 1, want: "step 1 of 1 (slow) failed: time limit reached\nso far", isError: true},
		"failure tolerated":                 {text: "    steps: [{tool: echo}, {tool: fail, continueOnError: true}]\n", calls: 2, want: `{"x":1}`},
		"joined":                            {text: "    steps: [{tool: echo, params: '{a: 1}'}, {tool: fail, continueOnError: true}, {tool: echo}]\n", calls: 3, want: "{\"a\":1}\n\n{\"x\":1}"},
		"failure is visible to expressions": {text: "    steps: [{tool: fail, continueOnError: true}]\n    result: '[.steps[0].ok, .steps[0].error]'\n", calls: 1, want: `[false,"it failed\nbadly"]`},
		"bad params":                        {text: "    steps: [{tool: args}]\n", calls: 1, want: "step 1 of 1 (args) failed: invalid params for args: /x: is wrong", isError: true},
		"cannot be made":                    {text: "    steps: [{tool: cannot, continueOnError: true}, {tool: echo}]\n", calls: 2, want: `{"x":1}`},
		"denial stops":                      {text: "    steps: [{tool: echo}, {tool: no, continueOnError: true}, {tool: echo}]\n", calls: 2, err: registry.ErrDenied, says: `composite "one", step 2 of 3 (no) after echo: `},
		"no such tool":                      {text: "    steps: [{tool: echo}, {tool: missing, continueOnError: true}]\n", calls: 2, says: `s.yaml:3:`},
		"source down":                       {text: "    steps: [{tool: down}]\n", calls: 1, err: registry.ErrSourceFailed},
		"params not an object":              {text: "    steps: [{tool: echo, params: '[1]'}]\n", want: "step 1 of 1 (echo) failed: its params \"[1]\" return array, not an object", isError: true},
		"params nothing":                    {text: "    steps: [{tool: echo, params: 'empty'}]\n", want: "step 1 of 1 (echo) failed: its params \"empty\": it returned no value", isError: true},
		"params two":                        {text: "    steps: [{tool: echo, params: '{}, {}'}]\n", want: "step 1 of 1 (echo) failed: its params \"{}, {}\": it returned more than one value; put them in [ ]", isError: true},
		"if fails":                          {text: "    steps: [{tool: echo, if: '.params.x.y.z'}]\n    result: '1'\n", want: `step 1 of 1 (echo) failed: its if ".params.x.y.z": expected an object but got: number (1)`, isError: true},
		"result fails":                      {text: "    steps: [{tool: echo}]\n    result: 'error(\"no\")'\n", calls: 1, want: `the result of composite "one", "error(\"no\")", failed: error: no`, isError: true},
		"environment hidden":                {text: "    steps: [{tool: echo, params: '{e: env, h: $ENV.HOME}'}]\n", calls: 1, want: `{"e":{},"h":null}`},
		"none ran":                          {text: "    steps: [{tool: echo, if: 'false'}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			result, calls, err := runOne(t, c.text, `{"x":1}`)
			if len(calls) != c.calls {
				t.Errorf("calls %q, want %d", calls, c.calls)
			}
			if (c.err != nil || c.says != "") != (err != nil) || c.err != nil && !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v, want %v %q", err, c.err, c.says)
			}
			if result.Text() != c.want || result.IsError != c.isError {
				t.Errorf("result %q, error %v; want %q, %v", result.Text(), result.IsError, c.want, c.isError)
			}
			if _, settingsError := errors.AsType[*document.Error](err); settingsError != (name == "no such tool") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestEndlessExpressionStopsWithCall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	steps := stepFunc(func(context.Context, string, json.RawMessage) (registry.Result, error) {
		cancel()
		return registry.TextResult("x"), nil
	})
	c, err := parseComposites(t, "composites: {one: {steps: [{tool: x}], result: 'def f: f; f'}}", CompositeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tools, _, _ := c.Discover(ctx)
	if _, err := tools[0].Run(ctx, registry.Call{Steps: steps}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// The user may have to undo the steps that ran before a call was stopped.
func TestStoppedCallNamesItsSteps(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	steps := stepFunc(func(ctx context.Context, tool string, _ json.RawMessage) (registry.Result, error) {
		if tool == "slow" {
			cancel()
		}
		return registry.TextResult("x"), context.Cause(ctx)
	})
	c, err := parseComposites(t, "composites: {one: {steps: [{tool: save}, {tool: skip, if: 'false'}, {tool: slow}, {tool: save}]}}", CompositeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tools, _, _ := c.Discover(ctx)
	result, err := tools[0].Run(ctx, registry.Call{Steps: steps})
	if want := "it was stopped in step 3 of 4 (slow) after save"; result.Text() != want || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, want %q; error %v", result.Text(), want, err)
	}
	if result.Summary != "save ok, skip skipped" || !strings.Contains(string(result.Meta), `"tool":"save","state":"ok"`) {
		t.Errorf("summary %q, meta %s", result.Summary, result.Meta)
	}
}

// Nested composites multiply the steps, so their total in one call is limited.
func TestStepsOfOneCallAreLimited(t *testing.T) {
	text := "composites:\n  c0: {steps: [{tool: leaf}]}\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("  c%d: {steps: [%s{tool: c%d}]}\n", i, strings.Repeat(fmt.Sprintf("{tool: c%d}, ", i-1), 9), i-1)
	}
	var tools map[string]registry.Tool
	calls := 0
	var steps stepFunc
	steps = func(ctx context.Context, tool string, params json.RawMessage) (registry.Result, error) {
		if calls++; tool == "leaf" {
			return registry.TextResult(""), nil
		}
		return tools[tool].Run(ctx, registry.Call{Params: params, Steps: steps})
	}
	c, err := parseComposites(t, text, CompositeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, _, _ := c.Discover(t.Context())
	tools = map[string]registry.Tool{}
	for _, tool := range found {
		tools[tool.Name] = tool
	}
	if _, err := tools["c11"].Run(t.Context(), registry.Call{Steps: steps}); !errors.Is(err, errTooManySteps) || calls > maxRun {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

func TestMistakesInComposites(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"all at once": {"composites:\n  a:\n    step: 1\n    parameters: {type: 7}\n    steps:\n      - tool: x\n        params: '{a'\n        if: 'nofunc'\n      - {tol: x}\n      - 7\n    result: '. |'\n", []string{
			`:3:5: unknown setting "composites.a.step" (did you mean "composites.a.steps"?)`,
			":4:5: composites.a.parameters: its input schema is not valid",
			":7:9: composites.a.steps[0].params: not a jq expression",
			":8:9: composites.a.steps[0].if: not a jq expression: function not defined: nofunc/0",
			`:9:9: composites.a.steps[1]: tool is missing`,
			`:9:10: unknown setting "composites.a.steps[1].tol"`,
			":10:9: composites.a.steps[2]: expected an object, got number",
			":11:5: composites.a.result: not a jq expression",
		}},
		"no steps":     {"composites:\n  a: {steps: []}\n", []string{":2:14: composites.a.steps: must have 1 to 100 steps"}},
		"not an entry": {"composites:\n  a: 7\n", []string{":2:6: composites.a: expected an object, got number"}},
		"itself":       {"composites:\n  a: {steps: [{tool: a}]}\n", []string{`:2:16: composites.a.steps[0].tool: "a" calls this composite again`}},
		"a circle":     {"composites:\n  a:\n    steps: [{tool: b}]\n  b:\n    steps: [{tool: x}, {tool: 'a'}]\n", []string{`:5:25: composites.b.steps[1].tool: "a" calls this composite again`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseComposites(t, c.text, CompositeOptions{})
			e, ok := errors.AsType[*document.Error](err)
			if !ok || len(e.Problems) != len(c.want) {
				t.Fatalf("error %v, want %d problems", err, len(c.want))
			}
			for i, p := range e.Problems {
				if !strings.Contains(p.String(), "s.yaml"+c.want[i]) {
					t.Errorf("problem %d: %s\nwant %s", i, p, c.want[i])
				}
			}
		})
	}
}

func TestStepsWithUnknownTool(t *testing.T) {
	c, err := parseComposites(t, "composites:\n  a: {steps: [{tool: x}, {tool: y}]}\n  b: {steps: [{tool: x}]}\n", CompositeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) error {
		if name == "x" {
			return nil
		}
		return errors.New("no tool named " + name)
	}
	excuses := func(document.Problem, error) bool { return false }
	if !c.Resolve(lookup, excuses) || c.Resolve(lookup, excuses) {
		t.Error("the first time a composite is quarantined, the second time none is left to be")
	}
	tools, diags, err := c.Discover(t.Context())
	const why = "s.yaml:2:27: composites.a.steps[1].tool: no tool named y"
	if err != nil || len(diags) != 1 || !strings.HasSuffix(diags[0].Message, why) {
		t.Errorf("%v, %v", diags, err)
	}
	if q := tools[0].Quarantine; q == nil || !strings.HasSuffix(q.Error(), why) || tools[1].Quarantine != nil {
		t.Errorf("quarantined: %v, %v", tools[0].Quarantine, tools[1].Quarantine)
	}
}

func TestCompositesAreTools(t *testing.T) {
	c, err := parseComposites(t, "composites:\n  One.Two: {description: d, parameters: {type: object, required: [x]}, steps: [{tool: x}]}\n  b: {steps: [{tool: One.Two}]}\n", CompositeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tools, diags, err := c.Discover(t.Context())
	if err != nil || len(diags) > 0 || len(tools) != 2 || c.Name() != "composite" {
		t.Fatalf("%d tools, %v, %v", len(tools), diags, err)
	}
	want := registry.Definition{Name: "One.Two", Description: "d", Source: "composite", Category: "other", InputSchema: json.RawMessage(`{"type":"object","required":["x"]}`)}
	if diff := cmp.Diff(want, tools[0].Definition); diff != "" {
		t.Error(diff)
	}
	if tools[0].Fingerprint() == tools[1].Fingerprint() {
		t.Error("two composites have one fingerprint")
	}
}

// A step may name a composite in a way that only the registry of all sources knows, so
// that it is found out at the run.
func TestACompositeThatCallsItselfByAnotherNameIsStopped(t *testing.T) {
	var tools []registry.Tool
	runs := 0
	var steps stepFunc
	steps = func(ctx context.Context, _ string, params json.RawMessage) (registry.Result, error) {
		if runs++; runs > 3 {
			return registry.Result{}, errors.New("it goes on")
		}
		return tools[0].Run(ctx, registry.Call{Tool: "one", Params: params, Steps: steps})
	}
	c, err := parseComposites(t, "composites:\n  one: {steps: [{tool: renamed}]}\n", CompositeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tools, _, _ = c.Discover(t.Context())
	_, err = tools[0].Run(t.Context(), registry.Call{Tool: "one", Params: json.RawMessage("{}"), Steps: steps})
	if err == nil || !strings.Contains(err.Error(), "s.yaml:2:3: composites.one: it calls itself again") || runs != 1 {
		t.Errorf("%v after %d steps", err, runs)
	}
	if _, err = tools[0].Run(t.Context(), registry.Call{Tool: "one", Params: json.RawMessage("{}"), Steps: steps}); runs != 2 {
		t.Errorf("a second call made %d steps: %v", runs-1, err)
	}
}
