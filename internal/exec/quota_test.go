package exec

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// A quota is asked about a call that is about to run, and about no other.
func TestQuota(t *testing.T) {
	limited := &LimitedError{Tool: "t", Calls: 2, Per: time.Hour, Again: time.Minute, Origin: "s.yaml:3"}
	for _, one := range []struct {
		verdict policy.Verdict
		limited error
		counted int
		ran     int
	}{
		{allow(), nil, 1, 1},
		{allow(), limited, 1, 0},
		{deny(), limited, 0, 0},
	} {
		r := newRig(one.verdict)
		counted := 0
		r.x.Quota = func(context.Context, *registry.Tool) error { counted++; return one.limited }
		var seen Record
		r.x.Observe = func(_ context.Context, record Record) { seen = record }
		_, err := r.execute(t, `{"a":1}`)
		if counted != one.counted || len(r.ran) != one.ran || seen.Ran != (one.ran > 0) || one.counted > 0 && !errors.Is(err, one.limited) {
			t.Errorf("%v, limit %v: %v; counted %d times, ran %v, recorded as run: %t", one.verdict.Decision, one.limited, err, counted, r.ran, seen.Ran)
		}
	}
}

func TestLimitedErrorSaysWhen(t *testing.T) {
	for calls, want := range map[int]string{1: "1 call in 1h0m0s is permitted", 2: "2 calls in 1h0m0s are permitted", 0: "0 calls in 1h0m0s are permitted"} {
		e := &LimitedError{Tool: "t", Calls: calls, Per: time.Hour, Again: time.Minute, Origin: "s.yaml:3"}
		if got := e.Error(); !strings.Contains(got, want+" (serve.limits, s.yaml:3); try again in 1m0s") {
			t.Errorf("%s", got)
		}
		if got := Explain(e); !strings.Contains(got, want+". Try again in 1m0s") || strings.Contains(got, "s.yaml") {
			t.Errorf("%s", got)
		}
	}
}
