package middleware

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// failing returns a tool that fails n times in the given way, then succeeds, and
// records when it was run.
func failing(n int, r registry.Result, err error, at *[]time.Duration) runFunc {
	start := time.Now()
	return func(context.Context, registry.Call) (registry.Result, error) {
		*at = append(*at, time.Since(start))
		if len(*at) <= n {
			return r, err
		}
		return registry.TextResult("done"), nil
	}
}

func TestRetry(t *testing.T) {
	broken := errors.New("connection lost")
	execution := registry.ErrorResult(registry.ErrorExecution, "no")
	for name, tt := range map[string]struct {
		fails  int
		result registry.Result
		err    error
		want   []time.Duration // when it was run
		ok     bool
	}{
		"no failure":                {0, registry.Result{}, nil, []time.Duration{0}, true},
		"it works later":            {2, registry.Result{}, broken, []time.Duration{0, time.Second, 3 * time.Second}, true},
		"the tool reports an error": {1, execution, nil, []time.Duration{0, time.Second}, true},
		"it never works":            {9, execution, broken, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}, false},
		"params are invalid":        {9, registry.Result{}, registry.Invalid("t", "", "x"), []time.Duration{0}, false},
		"it was denied":             {9, registry.Result{}, fmt.Errorf("step: %w", registry.ErrDenied), []time.Duration{0}, false},
		"a time limit":              {9, registry.ErrorResult(registry.ErrorTimeout, "late"), broken, []time.Duration{0}, false},
		"validation":                {9, registry.ErrorResult(registry.ErrorValidation, "no"), nil, []time.Duration{0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				tool := Retry{Retries: 3, Delay: time.Second}.Wrap(reader(failing(tt.fails, tt.result, tt.err, &at)))
				r, err := tool.Run(t.Context(), call("{}"))
				if diff := cmp.Diff(tt.want, at); diff != "" {
					t.Errorf("runs (-want +got):\n%s", diff)
				}
				if ok := err == nil && !r.IsError; ok != tt.ok {
					t.Errorf("%+v, %v", r, err)
				}
				attempts := len(tt.want)
				if attempts == 1 {
					attempts = 0
				}
				if r.Attempts != attempts {
					t.Errorf("attempts %d, want %d", r.Attempts, attempts)
				}
			})
		})
	}
}

// A server that exits after the first attempt would have to be started again for
// the second.
func TestOnlyFinalAttemptIsLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []bool
		tool := Retry{Retries: 2}.Wrap(reader(func(_ context.Context, c registry.Call) (registry.Result, error) {
			got = append(got, c.Last)
			return registry.Result{}, errors.New("connection lost")
		}))
		c := call("{}")
		c.Last = true
		_, err := tool.Run(t.Context(), c)
		if diff := cmp.Diff([]bool{false, false, true}, got); diff != "" || err == nil {
			t.Errorf("%v, (-want +got):\n%s", err, diff)
		}
	})
}

func TestCallsThatMayChangeSomethingAreNotRepeated(t *testing.T) {
	var at []time.Duration
	tool := reader(failing(5, registry.Result{}, errors.New("broken"), &at))
	tool.Category = registry.CategoryWrite
	if _, err := (Retry{Retries: 5}).Wrap(tool).Run(t.Context(), call("{}")); err == nil || len(at) != 1 {
		t.Errorf("%d runs, %v", len(at), err)
	}
}

func TestRetryStopsWhenContextIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		var at []time.Duration
		tool := Retry{Retries: 1000, Delay: time.Hour}.Wrap(reader(failing(1000, registry.Result{}, errors.New("broken"), &at)))
		if _, err := tool.Run(ctx, call("{}")); err == nil || err.Error() != "broken" {
			t.Errorf("error %v", err)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Minute}, at); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

func TestRetriesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		tool := Retry{Retries: 1000, Delay: time.Minute}.Wrap(reader(failing(1000, registry.Result{}, errors.New("broken"), &at)))
		if _, err := tool.Run(t.Context(), call("{}")); err == nil {
			t.Error("it succeeded")
		}
		if last := at[len(at)-1]; len(at) != maxRetries+1 || last != maxRetries*maxDelay {
			t.Errorf("%d runs, the last after %s", len(at), last)
		}
	})
}
