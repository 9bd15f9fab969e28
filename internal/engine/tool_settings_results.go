package engine

import (
	"context"
	"fmt"

	"github.com/toolreg/toolreg/internal/middleware"
	"github.com/toolreg/toolreg/internal/overrides"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// projectResults reduces the results of a tool to what its override keeps. If
// that fails, the call fails, and the original result is written to a file.
func (r *toolRuns) projectResults(t registry.Tool) registry.Tool {
	if t.Project == nil {
		return t
	}
	inner := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		call.Emit, call.Keep, call.Spill = nil, 0, nil // the expression needs the whole result
		whole, err := inner(ctx, call)
		if err != nil {
			return whole, err
		}
		result, err := t.Project(ctx, whole)
		if err != nil {
			return r.unprojected(&t, whole, err), nil
		}
		result.SavedTokens = max(tokensOf(whole)-tokensOf(result), 0)
		return result, nil
	}
	return t
}

// unprojected returns the result of a call whose result cannot be reduced.
func (r *toolRuns) unprojected(t *registry.Tool, whole registry.Result, failure error) registry.Result {
	note := "the unchanged result cannot be saved"
	if raw, err := overrides.Raw(whole); err == nil {
		o := middleware.Output{Spill: r.Settings.Limits.Spill, Dir: r.outputs}
		if path, err := o.Save(t.Name, raw); err == nil {
			note = "the unchanged result is in " + path
		}
	}
	out := registry.ErrorResult(registry.ErrorExecution, fmt.Sprintf("%v (%s); %s", failure, t.Reshaped.Origin, note))
	out.Duration, out.Attempts, out.Asked, out.Confined = whole.Duration, whole.Attempts, whole.Asked, whole.Confined
	return out
}

// tokensOf estimates the tokens of a result.
func tokensOf(r registry.Result) int {
	text := []byte(r.Text())
	if len(r.Content) == 0 {
		text = r.Structured
	}
	return provider.Format{}.Tokens(text) // for any model
}
