// Package jq evaluates the jq expressions of settings and manifests: the steps
// of composites, and the conditions of plugins' tools and of policy rules.
// Expressions cannot access the environment, files or modules, and are limited in
// time; those that others than the user wrote also in memory, in a process of
// their own.
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/memory"
)

// Expression is a compiled jq expression. It cannot access the environment,
// files or modules. It is safe for concurrent use.
type Expression struct {
	Text string // as written
	code *gojq.Code
	// evaluator is the command that evaluates it; nil: it is evaluated here.
	evaluator []string
}

// Compile compiles an expression over one value.
func Compile(text string) (*Expression, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not a jq expression: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("not a jq expression: %w", err)
	}
	return &Expression{Text: text, code: code}, nil
}

// errNoValue reports that an expression returned nothing.
var errNoValue = errors.New("it returned no value")

// Value returns the single value of the expression for input, which must
// consist of JSON types, as [Decode] returns them. After 10 s it is an error, and
// so it is if an expression of [Expression.Apart] takes more than 256 MiB of
// memory. An expression that was stopped may still read the input afterwards.
func (e *Expression) Value(ctx context.Context, input any) (any, error) {
	return e.within(ctx, maxTime, maxMemory, input)
}

// within evaluates the expression within limits.
func (e *Expression) within(ctx context.Context, most time.Duration, bytes uint64, input any) (any, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it took longer than %s", most))
	defer cancel()
	if e.evaluator != nil {
		return e.apart(ctx, bytes, input)
	}
	return e.here(ctx, input)
}

func (e *Expression) here(ctx context.Context, input any) (any, error) {
	v, err := memory.Await(ctx, func() any { return only(e.code.RunWithContext(ctx, input)) })
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if failure, failed := v.(error); failed {
		return nil, failure
	}
	if deeper(v, maxDepth) {
		return nil, fmt.Errorf("its value is nested deeper than %d levels", maxDepth)
	}
	return v, err
}

// deeper reports whether a value has more than so many levels of lists and objects.
func deeper(v any, levels int) bool {
	below := func(x any) bool { return deeper(x, levels-1) }
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

// only returns the one value of an expression, or an error.
func only(iter gojq.Iter) any {
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

// ValueBriefly is [Expression.Value] within the limits for what is evaluated for every
// call or run: 1 s and 64 MiB.
func (e *Expression) ValueBriefly(ctx context.Context, input any) (any, error) {
	return e.within(ctx, briefTime, briefMemory, input)
}

// Text converts a value to text for a model: a string stays as it is,
// everything else becomes JSON. An object is also structured content; other
// values have none.
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

// Holds reports whether the expression returns anything except false and null;
// no value means false.
func (e *Expression) Holds(ctx context.Context, input any) (bool, error) {
	return holds(e.Value(ctx, input))
}

func holds(v any, err error) (bool, error) {
	if errors.Is(err, errNoValue) {
		return false, nil
	}
	return v != nil && v != false, err
}

// Limits on an expression. The brief ones are for expressions that are
// evaluated for every call or run.
const (
	maxTime     = 10 * time.Second
	maxMemory   = 256 << 20
	maxDepth    = 10_000 // encoding/json reads no more; encoding many more would overflow the stack
	briefMemory = 64 << 20
	briefTime   = time.Second
)

// HoldsBriefly is [Expression.Holds] within the limits of [Expression.ValueBriefly].
func (e *Expression) HoldsBriefly(ctx context.Context, input any) (bool, error) {
	return holds(e.ValueBriefly(ctx, input))
}

// IsTrue reports whether the expression returns true, within the limits of
// [Expression.ValueBriefly]. false and null are not true; any other value, and none, is an error.
func (e *Expression) IsTrue(ctx context.Context, input any) (bool, error) {
	switch v, err := e.ValueBriefly(ctx, input); v := v.(type) {
	case nil:
		return false, err
	case bool:
		return v, err
	default:
		return false, fmt.Errorf("it returned %s, not true or false", article(gojq.TypeOf(v)))
	}
}

// article returns the name of a JSON type with its article.
func article(name string) string {
	if strings.HasPrefix(name, "a") || strings.HasPrefix(name, "o") {
		return "an " + name
	}
	return "a " + name
}

// Decode decodes JSON for jq; large integers keep all digits.
func Decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return jsonx.Decode(raw)
}
