package middleware

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type runFunc = func(context.Context, registry.Call) (registry.Result, error)

func reader(run runFunc) registry.Tool {
	return registry.Tool{Definition: registry.Definition{Name: "look", Source: registry.SourceBuiltin, Category: registry.CategoryRead}, Behavior: registry.Behavior{Run: run}}
}

func call(params string) registry.Call {
	return registry.Call{Tool: "look", Params: json.RawMessage(params), Emit: func(registry.Content) {}, Progress: func(registry.Progress) {}}
}

func openDir(t testing.TB) *state.Dir {
	t.Helper()
	d, err := state.OpenDir(filepath.Join(t.TempDir(), "toolreg"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestReadOnlyAndRepeatable(t *testing.T) {
	mcp := func(trusted bool, category registry.Category, annotations string) registry.Tool {
		return registry.Tool{Definition: registry.Definition{Source: "mcp:s", Category: category, Annotations: json.RawMessage(annotations)}, Trusted: trusted}
	}
	for name, tt := range map[string]struct {
		tool             registry.Tool
		readOnly, repeat bool
	}{
		"a built-in that reads":              {reader(nil), true, true},
		"a built-in that writes":             {registry.Tool{Definition: registry.Definition{Source: "builtin", Category: registry.CategoryWrite}}, false, false},
		"a composite, whose steps may write": {registry.Tool{Definition: registry.Definition{Source: "composite", Category: registry.CategoryRead}}, false, false},
		"one without annotations":            {registry.Tool{}, false, false},
		"an untrusted server's word":         {mcp(false, registry.CategoryRead, `{"readOnlyHint":true,"idempotentHint":true}`), false, false},
		"a trusted server's read-only":       {mcp(true, registry.CategoryOther, `{"readOnlyHint":true}`), true, true},
		"a trusted one's idempotent":         {mcp(true, registry.CategoryOther, `{"idempotentHint":true}`), false, true},
		"a trusted one's false":              {mcp(true, registry.CategoryOther, `{"readOnlyHint":false,"idempotentHint":"true"}`), false, false},
		"broken annotations":                 {mcp(true, registry.CategoryOther, `[`), false, false},
		"a built-in's annotations":           {registry.Tool{Definition: registry.Definition{Source: "builtin", Annotations: json.RawMessage(`{"readOnlyHint":true}`)}}, false, false},
	} {
		if got := ReadOnly(&tt.tool); got != tt.readOnly {
			t.Errorf("%s: read-only %t", name, got)
		}
		if got := Repeatable(&tt.tool); got != tt.repeat {
			t.Errorf("%s: repeatable %t", name, got)
		}
	}
}
