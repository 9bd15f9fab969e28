package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/memory"
	"github.com/toolreg/toolreg/internal/process"
)

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
