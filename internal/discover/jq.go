package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/memory"
)

// expression is a compiled jq expression. It cannot access the environment,
// files or modules.
type expression struct {
	text string
	code *gojq.Code
}

// compileExpression compiles a jq expression over one value.
func compileExpression(text string) (*expression, error) {
	query, err := gojq.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("not a jq expression: %w", err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("not a jq expression: %w", err)
	}
	return &expression{text: text, code: code}, nil
}

// errNoValue reports that an expression returned nothing.
var errNoValue = errors.New("it returned no value")

// value returns the single value of the expression for input, which must
// consist of JSON types. ctx stops an endless expression.
func (e *expression) value(ctx context.Context, input any) (any, error) {
	ctx, stop := memory.Limit(ctx, maxMemory)
	defer stop()
	v, err := memory.Await(ctx, func() any { return only(e.code.RunWithContext(ctx, input)) })
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if failure, failed := v.(error); failed {
		return nil, failure
	}
	return v, err
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

// holds reports whether the expression returns anything except false and null;
// no value means false.
func (e *expression) holds(ctx context.Context, input any) (bool, error) {
	v, err := e.value(ctx, input)
	if errors.Is(err, errNoValue) {
		return false, nil
	}
	return v != nil && v != false, err
}

// Limits on conditions, and on the memory of all expressions.
const (
	maxMemory          = 256 << 20
	maxConditionTime   = time.Second
	maxConditionMemory = 64 << 20
)

// holdsSoon is holds for conditions, which are evaluated for every call or run:
// one that takes too much time or memory is an error.
func (e *expression) holdsSoon(ctx context.Context, input any) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxConditionTime, fmt.Errorf("it took longer than %s", maxConditionTime))
	defer cancel()
	ctx, stop := memory.Limit(ctx, maxConditionMemory)
	defer stop()
	return e.holds(ctx, input)
}

// decodeValue decodes JSON for jq; large integers keep all digits.
func decodeValue(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return jsonx.Decode(raw)
}
