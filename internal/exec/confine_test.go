package exec

import (
	"context"
	"errors"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

func confinedVerdict() policy.Verdict {
	return policy.Verdict{Decision: policy.Sandbox, Origin: "s.yaml:1", Confine: policy.Confinement{On: true, Online: true, By: "s.yaml:1"}}
}

// A call that must run in the sandbox does not run if there is none.
func TestCallThatCannotBeConfinedIsRefused(t *testing.T) {
	r := newRig(confinedVerdict())
	_, err := r.execute(t, `{}`)
	if !errors.Is(err, registry.ErrDenied) || len(r.ran) > 0 {
		t.Errorf("%v, ran %q", err, r.ran)
	}
}

// The sandbox is the innermost wrapper, so each attempt gets its own.
func TestConfineWrapsEachAttempt(t *testing.T) {
	r := newRig(confinedVerdict())
	confined := 0
	r.x.Confine = func(tool registry.Tool, c policy.Confinement) registry.Tool {
		if !c.Online || c.By != "s.yaml:1" {
			t.Errorf("%+v", c)
		}
		run := tool.Run
		tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			confined++
			return run(ctx, call)
		}
		return tool
	}
	r.x.Wrap = []registry.Middleware{func(tool registry.Tool) registry.Tool {
		run := tool.Run
		tool.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
			_, _ = run(ctx, call)
			return run(ctx, call)
		}
		return tool
	}}
	if _, err := r.execute(t, `{}`); err != nil || confined != 2 || len(r.ran) != 2 {
		t.Errorf("%v, confined %d times, ran %d times", err, confined, len(r.ran))
	}
	r = newRig(allow())
	r.x.Confine = func(tool registry.Tool, _ policy.Confinement) registry.Tool { t.Error("confined"); return tool }
	if _, err := r.execute(t, `{}`); err != nil || len(r.ran) != 1 {
		t.Errorf("%v, ran %q", err, r.ran)
	}
}

// A call that a person allows always in the sandbox runs there at once, even if the
// answer cannot be stored.
func TestAlwaysInSandboxConfinesTheCall(t *testing.T) {
	inside, outside := commandScopes()
	for answer, want := range map[Choice]bool{Yes: false, Always: true, AlwaysOutside: false} {
		v := ask(inside, outside)
		v.InSandbox = policy.Confinement{On: true, By: "approval"}
		r := newRig(v)
		r.memory.err = errors.New("disk full")
		confined := false
		r.x.Confine = func(tool registry.Tool, _ policy.Confinement) registry.Tool { confined = true; return tool }
		r.script.answers = []Answer{{Choice: answer}}
		if _, err := r.execute(t, `{}`); err != nil || len(r.ran) != 1 {
			t.Fatalf("%s: ran %q, %v", answer, r.ran, err)
		}
		if confined != want {
			t.Errorf("%s: confined %t", answer, confined)
		}
	}
}
