package registry

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func entries(values ...string) []Entry {
	var out []Entry
	for _, v := range values {
		out = append(out, Entry{Value: v, Setting: "s.yaml:1"})
	}
	return out
}

func TestFilters(t *testing.T) {
	withPermission := func(p string) Tool { x := builtinTool("sh"); x.Permissions = []string{p}; return x }
	optional := func(t Tool) Tool { t.Optional = true; return t }
	tests := []struct {
		name   string
		filter Filter
		tool   Tool
		hidden bool
	}{
		{"core names it", CoreToolsFilter(entries("read_file"), ""), builtinTool("read_file"), false},
		{"core lists its alias", CoreToolsFilter(entries("ReadFileTool(x)"), ""), builtinTool("read_file", "ReadFileTool"), false},
		{"core is empty", CoreToolsFilter(nil, ""), builtinTool("read_file"), true},
		{"core does not hide other sources", CoreToolsFilter(nil, ""), discoveredTool("x"), false},
		{"include absent", ServerToolsFilter("s", false, nil, nil, ""), mcpTool("s", "t"), false},
		{"include empty", ServerToolsFilter("s", true, nil, nil, ""), mcpTool("s", "t"), true},
		{"include exact", ServerToolsFilter("s", true, entries("t"), nil, ""), mcpTool("s", "t"), false},
		{"include with args", ServerToolsFilter("s", true, entries("t(a, b)"), nil, ""), mcpTool("s", "t"), false},
		{"include glob", ServerToolsFilter("s", true, entries("get_*"), nil, ""), mcpTool("s", "get_x/y"), false},
		{"exclude wins", ServerToolsFilter("s", true, entries("t"), entries("t"), ""), mcpTool("s", "t"), true},
		{"another server", ServerToolsFilter("s", true, nil, nil, ""), mcpTool("r", "t"), false},
		{"permission denied", PermissionsFilter(map[string]string{"shell": "s.yaml:2"}), withPermission("shell"), true},
		{"permission of another kind", PermissionsFilter(map[string]string{"network": "s.yaml:2"}), withPermission("shell"), false},
		{"optional", OptionalFilter(nil), optional(pluginTool("p", "a", "")), true},
		{"optional allowed by name", OptionalFilter(entries("a")), optional(pluginTool("p", "a", "")), false},
		{"optional allowed by plugin", OptionalFilter(entries("p")), optional(pluginTool("p", "a", "")), false},
		{"optional allowed by group", OptionalFilter(entries("group:plugins")), optional(pluginTool("p", "a", "")), false},
		{"group does not include other sources", OptionalFilter(entries("group:plugins")), optional(discoveredTool("a")), true},
		{"exclude plain", ExcludeFilter(entries("t")), mcpTool("s", "t"), true},
		{"exclude qualified", ExcludeFilter(entries("s__t")), mcpTool("s", "t"), true},
		{"exclude by case", ExcludeFilter(entries("ECHO")), mcpTool("s", "echo"), true},
		{"exclude ignores case in the tool", ExcludeFilter(entries("deleteissue")), mcpTool("s", "deleteIssue"), true},
		{"exclude ignores case in the server", ExcludeFilter(entries("git*__deleteissue")), mcpTool("GitHub", "deleteIssue"), true},
		{"exclude of a server is case-sensitive", ServerToolsFilter("s", false, nil, entries("T"), ""), mcpTool("s", "t"), false},
		{"exclude alternatives", ExcludeFilter(entries("{read,write}_*")), builtinTool("write_file"), true},
		{"exclude by alias", ExcludeFilter(entries("read")), builtinTool("read_file", "read"), true},
		{"exclude glob", ExcludeFilter(entries("s__*")), mcpTool("s", "t"), true},
		{"exclude with args is a rule", ExcludeFilter(entries("sh(rm)")), builtinTool("sh"), false},
		{"exclude raw name", ExcludeFilter(entries("a b")), mcpTool("s", "a b"), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.filter(&tt.tool) != nil; got != tt.hidden {
				t.Errorf("hidden = %v, want %v", got, tt.hidden)
			}
		})
	}
}

func TestHiddenToolsAreReportedAndTakeNoName(t *testing.T) {
	reg := load(t, Options{Filters: []Filter{ExcludeFilter(entries("a__t"))}}, sourcesOf(mcpTool("a", "t"), mcpTool("b", "t"))...)
	if d := cmp.Diff([]string{"t"}, namesOf(reg.Tools())); d != "" {
		t.Error(d)
	}
	if got, _ := reg.Lookup("t"); got.Server != "b" {
		t.Errorf("t belongs to %s", got.Server)
	}
	want := []Hidden{{Name: "t", Source: "mcp:a", Reason: "listed in excludeTools", Setting: "s.yaml:1"}}
	if d := cmp.Diff(want, reg.Hidden()); d != "" {
		t.Error(d)
	}
}

func TestLookupOfHiddenToolNamesSetting(t *testing.T) {
	reg := load(t, Options{Filters: []Filter{ExcludeFilter(entries("gone"))}}, sourcesOf(builtinTool("gone"))...)
	_, err := reg.Lookup("gone")
	var nf *NotFoundError
	if !errors.As(err, &nf) || nf.Hidden == nil || nf.Hidden.Setting != "s.yaml:1" {
		t.Errorf("err = %v", err)
	}
}
