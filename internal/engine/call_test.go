package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// BenchmarkCall measures a call without middleware, and with all middleware that the
// settings can add except hooks.
func BenchmarkCall(b *testing.B) {
	home := b.TempDir()
	retries := 3
	set := &settings.Settings{ProjectRoot: home, Audit: settings.Audit{Enabled: true, MaxSize: 10 << 20, Keep: 5},
		Limits: settings.Limits{Output: 10 << 20, Spill: 1 << 30}, ToolOptions: []settings.ToolOption{{Pattern: "*", Retries: &retries}}}
	environ := []string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache")}
	session, err := New(b.Context(), set, Deps{Environ: environ, Folders: &state.Folders{Environ: environ}, Warn: func(registry.Diagnostic) {},
		Outcome: func(context.Context, error) (string, int) { return "failure", 1 }}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	tool := &registry.Tool{
		Definition: registry.Definition{Name: "read_file", Source: "builtin", Category: registry.CategoryRead},
		Behavior: registry.Behavior{Run: func(context.Context, registry.Call) (registry.Result, error) {
			return registry.TextResult("hello"), nil
		}},
	}
	for _, surrounded := range []bool{false, true} {
		b.Run(fmt.Sprintf("surrounded=%t", surrounded), func(b *testing.B) {
			x := &exec.Executor{}
			if surrounded {
				if x, err = session.gate.newExecutor(b.Context(), registry.NewLoader(registry.Options{}).Load(b.Context(), nil, true)); err != nil {
					b.Fatal(err)
				}
			}
			x.Validate = func(context.Context, *registry.Tool, json.RawMessage) error { return nil }
			x.Decide = func(context.Context, *registry.Tool, registry.Call) policy.Verdict {
				return policy.Verdict{Decision: policy.Allow, Origin: "default"}
			}
			for b.Loop() {
				if _, err := x.Execute(b.Context(), tool, registry.Call{Params: json.RawMessage(`{"file_path":"a.txt"}`)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestErrorsHaveContent checks that a model gets a text for an error that has none.
func TestErrorsHaveContent(t *testing.T) {
	c := &Calls{gate: &gate{runs: &toolRuns{uncut: true}}}
	for _, tt := range []struct {
		result registry.Result
		want   []registry.Content
	}{
		{registry.Result{IsError: true, Summary: "t failed with no content"}, []registry.Content{registry.TextContent("t failed with no content")}},
		{registry.Result{IsError: true}, []registry.Content{registry.TextContent("the call failed and gave no reason")}},
		{registry.Result{Summary: "t returned no content"}, nil},
	} {
		if diff := cmp.Diff(tt.want, c.Answer(t.Context(), &registry.Tool{}, tt.result).Content); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
