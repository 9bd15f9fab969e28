package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestOptionsOfATool(t *testing.T) {
	second, minute, two, six, size := time.Second, time.Minute, 2, 6, int64(5)
	s := &settings.Settings{ToolOptions: []settings.ToolOption{
		{Pattern: "*", Timeout: &second, Retries: &two, Log: settings.LogNone},
		{Pattern: "git__l*", Timeout: &minute},
		{Pattern: "log", Retries: &six, Log: settings.LogParams},
		{Pattern: "other", MaxOutput: &size},
	}}
	tool := &registry.Tool{Definition: registry.Definition{Name: "log", Source: "mcp:git", Server: "git", ServerTool: "log"}}
	got := toolSettingsOf(s, tool)
	want := toolSettings{settings.ToolOption{Timeout: &minute, Retries: &six, Log: settings.LogParams}, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
