// Package jq evaluates the jq expressions in settings and manifests: the steps of
// composites, and the conditions of plugin tools and policy rules. Expressions
// cannot access the environment, files or modules. Their run time is limited.
// Expressions that the user did not write run in a separate process, so that their
// memory is limited too.
package jq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/memory"
	"github.com/toolreg/toolreg/internal/process"
)

// Expression is a compiled jq expression. It cannot access the environment,
// files or modules. It is safe for concurrent use.
type Expression struct {
	Text string // as written
	code *gojq.Code
	// evaluator is the command that evaluates the expression; nil means this
	// process.
	evaluator []string
}

// Compile compiles an expression that takes one value as its input.
func Compile(text string) (*Expression, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not a jq expression: %w", err)
	}
	code, err := gojq.Compile(query, gojq.WithVariables([]string{callerVariable}))
	if err != nil {
		return nil, fmt.Errorf("not a jq expression: %w", err)
	}
	return &Expression{Text: text, code: code}, nil
}

// callerVariable is the variable that has who makes the call: an object with groups and, each only if
// it is known, name, profile, client and version, or null if it is the person at the command line.
const callerVariable = "$caller"

func callerOf(ctx context.Context) any {
	c := caller.From(ctx)
	if c == nil {
		return nil
	}
	groups := make([]any, len(c.Groups))
	for i, group := range c.Groups {
		groups[i] = group
	}
	out := map[string]any{"groups": groups}
	for name, value := range map[string]string{
		"name": c.Name, "profile": c.Profile, "client": c.Client, "version": c.Version,
	} {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

var errNoValue = errors.New("it returned no value")

// Value returns the single value of the expression for input, which must consist
// of JSON types, as [Decode] returns them. It returns an error if the evaluation
// takes longer than 10 s or, for an expression from [Expression.Isolated], uses more
// than 256 MiB of memory. An evaluation that was stopped may still read input
// after Value has returned.
func (e *Expression) Value(ctx context.Context, input any) (any, error) {
	return e.evalLimited(ctx, maxTime, maxMemory, input)
}

// evalLimited evaluates the expression with a time limit and a memory limit in bytes.
func (e *Expression) evalLimited(ctx context.Context, most time.Duration, bytes uint64, input any) (any, error) {
	if e.evaluator != nil {
		return e.evalIsolated(ctx, most, bytes, input)
	}
	return e.evalHere(ctx, most, input, callerOf(ctx))
}

func (e *Expression) evalHere(ctx context.Context, most time.Duration, input, who any) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most, tookLonger(most))
	defer cancel()
	v, err := memory.Await(ctx, func() any { return singleValue(e.code.RunWithContext(ctx, input, who)) })
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if failure, failed := v.(error); failed {
		return nil, failure
	}
	if exceedsDepth(v, maxDepth) {
		return nil, fmt.Errorf("its value is nested deeper than %d levels", maxDepth)
	}
	return v, err
}

func tookLonger(most time.Duration) error { return fmt.Errorf("it took longer than %s", most) }

// exceedsDepth reports whether a value has more than the given number of nested lists
// and objects.
func exceedsDepth(v any, levels int) bool {
	below := func(x any) bool { return exceedsDepth(x, levels-1) }
	switch v := v.(type) {
	case []any:
		return levels == 0 || slices.ContainsFunc(v, below)
	case map[string]any:
		if levels == 0 {
			return true
		}
		for _, x := range v {
			if below(x) {
				return true
			}
		}
	}
	return false
}

// singleValue returns the single value that the iterator yields, or an error.
func singleValue(iter gojq.Iter) any {
	v, ok := iter.Next()
	if !ok {
		return errNoValue
	}
	if _, failed := v.(error); failed {
		return v
	}
	more, ok := iter.Next()
	if _, failed := more.(error); failed {
		return more
	}
	if ok {
		return errors.New("it returned more than one value; put them in [ ]")
	}
	return v
}

// ValueBriefly is like [Expression.Value], with the limits for expressions that
// are evaluated for every call or every start of toolreg: 1 s and 64 MiB.
func (e *Expression) ValueBriefly(ctx context.Context, input any) (any, error) {
	return e.evalLimited(ctx, briefTime, briefMemory, input)
}

// Text converts a value to text for a model: a string is returned unchanged, and
// any other value is encoded as JSON. structured is the encoded value if it is an
// object, and nil otherwise.
func Text(v any) (text string, structured json.RawMessage, err error) {
	if s, ok := v.(string); ok {
		return s, nil, nil
	}
	raw, err := gojq.Marshal(v)
	if err != nil {
		return "", nil, fmt.Errorf("encoding the value of an expression: %w", err)
	}
	if _, ok := v.(map[string]any); ok {
		structured = raw
	}
	return string(raw), structured, nil
}

// Holds reports whether what [Expression.Value] or [Expression.ValueBriefly] returned is a value
// other than false and null. It returns false if there is no value.
func Holds(v any, err error) (bool, error) {
	if errors.Is(err, errNoValue) {
		return false, nil
	}
	return v != nil && v != false, err
}

// Limits of an evaluation. The brief ones apply to expressions that are evaluated
// for every call or every start of toolreg.
const (
	maxTime     = 10 * time.Second
	maxMemory   = 256 << 20
	maxDepth    = 10_000 // the limit of encoding/json; encoding a much deeper value would overflow the stack
	briefMemory = 64 << 20
	briefTime   = time.Second
	// startTime is what the start of a separate process, and its answer, may take in addition.
	startTime = 10 * time.Second
)

// IsTrue reports whether the expression returns true, with the limits of
// [Expression.ValueBriefly]. It returns false without an error for false and null,
// and an error for any other value or none.
func (e *Expression) IsTrue(ctx context.Context, input any) (bool, error) {
	switch v, err := e.ValueBriefly(ctx, input); v := v.(type) {
	case nil:
		return false, err
	case bool:
		return v, err
	default:
		raw, err := gojq.Marshal(v)
		return false, cmp.Or(err, fmt.Errorf("it returned %s, not true or false", jsonx.KindOf(raw)))
	}
}

// Decode decodes JSON for jq. Large integers keep all their digits.
func Decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return jsonx.Decode(raw)
}

// Isolated returns a copy of the expression that is evaluated in a separate process,
// whose memory can be limited independently of this process. It is meant for
// expressions that the user did not write. argv is the command of that process,
// which must call [Evaluate]. If argv is empty or e is nil, Isolated returns e.
func (e *Expression) Isolated(argv []string) *Expression {
	if e == nil || len(argv) == 0 {
		return e
	}
	other := *e
	other.evaluator = argv
	return &other
}

// request is the input of the evaluating process.
type request struct {
	Expression string          `json:"expression"`
	Time       time.Duration   `json:"time"`
	Input      json.RawMessage `json:"input"`
	Caller     json.RawMessage `json:"caller"`
	Memory     uint64          `json:"memory"` // bytes
}

// answer is the output of the evaluating process.
type answer struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	NoValue bool            `json:"noValue,omitempty"`
}

// maxAnswer limits the output of the evaluating process, in bytes.
const maxAnswer = maxMemory

// evalIsolated evaluates the expression in a separate process.
func (e *Expression) evalIsolated(ctx context.Context, most time.Duration, bytes uint64, input any) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most+startTime, tookLonger(most))
	defer cancel()
	raw, err := gojq.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encoding its input: %w", err)
	}
	who, err := gojq.Marshal(callerOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("encoding its caller: %w", err)
	}
	asked, err := json.Marshal(request{e.Text, most, raw, who, bytes})
	if err != nil {
		return nil, fmt.Errorf("encoding its input: %w", err)
	}
	out, err := process.Run(ctx, process.Spec{Argv: e.evaluator, Stdin: asked, MaxOutput: maxAnswer, Grace: 1})
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, fmt.Errorf("evaluating it in a separate process: %w", err)
	}
	var a answer
	switch err := json.Unmarshal(out.Stdout, &a); {
	case err != nil:
		return nil, fmt.Errorf("the process that evaluated it failed (exit code %d %s)", out.ExitCode, out.Signal)
	case a.NoValue:
		return nil, errNoValue
	case a.Error != "":
		return nil, errors.New(a.Error)
	}
	return Decode(a.Value)
}

// Evaluate reads a request from in, evaluates its expression and writes the answer
// to out. It is the main function of the process that [Expression.Isolated] starts.
// The process must do nothing else, because the limit applies to all of its
// memory.
func Evaluate(ctx context.Context, in io.Reader, out io.Writer) error {
	var asked request
	if err := json.NewDecoder(in).Decode(&asked); err != nil {
		return fmt.Errorf("reading the expression: %w", err)
	}
	v, err := asked.value(ctx)
	var a answer
	if err == nil {
		a.Value, err = gojq.Marshal(v)
	}
	if a.NoValue = errors.Is(err, errNoValue); err != nil && !a.NoValue {
		a.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(a)
}

func (r *request) value(ctx context.Context) (any, error) {
	e, err := Compile(r.Expression)
	if err != nil {
		return nil, err
	}
	input, err := Decode(r.Input)
	if err != nil {
		return nil, err
	}
	who, err := Decode(r.Caller)
	if err != nil {
		return nil, err
	}
	ctx, stop := memory.Limit(ctx, r.Memory)
	defer stop()
	return e.evalHere(ctx, r.Time, input, who)
}
