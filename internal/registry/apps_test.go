package registry

import (
	"encoding/json"
	"errors"
	"testing"
)

// A tool that only pages of its server may call is no tool for models: no name finds it. What is
// malformed or unknown restricts nothing.
func TestToolsForApps(t *testing.T) {
	for meta, forApp := range map[string]bool{
		``:                                      false,
		`{"ui":{}}`:                             false,
		`{"ui":{"visibility":["app"]}}`:         true,
		`{"ui":{"visibility":["app","app"]}}`:   true,
		`{"ui":{"visibility":["model","app"]}}`: false,
		`{"ui":{"visibility":["model"]}}`:       false,
		`{"ui":{"visibility":[]}}`:              false,
		`{"ui":{"visibility":"app"}}`:           false,
		`{"ui":{"visibility":["app",1]}}`:       false,
	} {
		tool := mcpTool("s", "refresh")
		tool.MCP.Meta = json.RawMessage(meta)
		reg := NewLoader(Options{}).Load(t.Context(), []Source{&listed{name: "mcp:s", tools: []Tool{tool, mcpTool("s", "show")}}}, false)
		if got := len(reg.Apps()) == 1; got != forApp || len(reg.Tools()) == 2 == forApp {
			t.Errorf("%s: for the app alone: %t, %d tools", meta, got, len(reg.Tools()))
		}
		for _, name := range []string{"refresh", "s__refresh"} {
			if _, err := reg.Lookup(name); errors.Is(err, ErrNotFound) != forApp {
				t.Errorf("%s: %s: %v", meta, name, err)
			}
		}
		if _, err := reg.LookupStep("refresh"); errors.Is(err, ErrNotFound) != forApp {
			t.Errorf("%s: a step: %v", meta, err)
		}
	}
}
