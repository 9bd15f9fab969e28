package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/memory"
	"github.com/toolreg/toolreg/internal/process"
)

// Apart returns the expression so that it is evaluated in a process of its own,
// whose memory can be limited whatever else this process does: for expressions
// that others than the user wrote. The argv of the process runs [Evaluate]. With
// an empty one, or for a nil expression, nothing changes.
func (e *Expression) Apart(argv []string) *Expression {
	if e == nil || len(argv) == 0 {
		return e
	}
	other := *e
	other.evaluator = argv
	return &other
}

// request is what the process of an expression reads.
type request struct {
	Expression string          `json:"expression"`
	Input      json.RawMessage `json:"input"`
	Memory     uint64          `json:"memory"` // bytes
}

// answer is what it writes.
type answer struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	NoValue bool            `json:"noValue,omitempty"`
}

// maxAnswer bounds what the process of an expression writes, in bytes.
const maxAnswer = maxMemory

// apart evaluates the expression in a process of its own.
func (e *Expression) apart(ctx context.Context, bytes uint64, input any) (any, error) {
	raw, err := gojq.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encoding its input: %w", err)
	}
	asked, err := json.Marshal(request{e.Text, raw, bytes})
	if err != nil {
		return nil, fmt.Errorf("encoding its input: %w", err)
	}
	out, err := process.Run(ctx, process.Spec{Argv: e.evaluator, Stdin: asked, MaxOutput: maxAnswer, Grace: 1})
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, fmt.Errorf("evaluating it in a process of its own: %w", err)
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

// Evaluate reads an expression with its input and writes its value, as the process of
// an expression of [Expression.Apart]. The process must do nothing else, because all of
// its memory counts.
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
	ctx, stop := memory.Limit(ctx, r.Memory)
	defer stop()
	return e.here(ctx, input)
}
