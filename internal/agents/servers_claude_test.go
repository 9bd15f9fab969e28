package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/imports"
)

func TestClaudeSwitchesServersAndToolsOff(t *testing.T) {
	const server = `{"command":"srv"}`
	const off = `{"command":"srv","disabled":true}`
	const apart = "/other" // another project
	for name, test := range map[string]struct {
		file          string
		user, project string // the server a in the user's file, and in .mcp.json
	}{
		"nothing":                     {`{}`, server, server},
		"disabled, written otherwise": {`{"projects":{"/srv/project/":{},"/srv/project":{"disabledMcpServers":["a"]}}}`, off, off},
		"disabled in this project":    {`{"projects":{"/srv/project":{"disabledMcpServers":["a"]}}}`, off, off},
		"disabled in another":         {`{"projects":{"` + apart + `":{"disabledMcpServers":["a"]}}}`, server, server},
		"disabled at the top":         {`{"disabledMcpServers":["a"]}`, server, server},
		"another is disabled":         {`{"projects":{"/srv/project":{"disabledMcpServers":["aa", 5]}}}`, server, server},
		"the team's, for the project": {`{"projects":{"/srv/project":{"disabledMcpjsonServers":["a"]}}}`, server, off},
		"the team's, in settings":     {`{"disabledMcpjsonServers":["a"]}`, server, off},
		"denied by name":              {`{"deniedMcpServers":[{"serverName":"a"},{"serverUrl":"x"}]}`, off, off},
		"rule for the server":         {`{"permissions":{"deny":["mcp__a"]}}`, off, off},
		"rule with a star":            {`{"permissions":{"deny":["mcp__a__*"]}}`, off, off},
		"rule for all":                {`{"permissions":{"deny":["mcp__*"]}}`, off, off},
		"rule for a tool":             {`{"permissions":{"deny":["mcp__a__rm","Bash(ls)","mcp__aa"]}}`, `{"command":"srv","excludeTools":["rm"]}`, `{"command":"srv","excludeTools":["rm"]}`},
		"rule that allows":            {`{"permissions":{"allow":["mcp__a"]}}`, server, server},
	} {
		got := []string{}
		for _, f := range (Importer{}).Files("claude", "/srv/project", []string{"HOME=/home/me"}) {
			if f.Path == "/home/me/.claude.json" && len(got) > 1 {
				continue
			}
			servers := []imports.Server{{Name: "a", JSON: []byte(server)}}
			f.Switch(servers, switchFile(t, test.file))
			got = append(got, string(servers[0].JSON))
		}
		if diff := cmp.Diff([]string{test.user, test.project}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A server has the name that Claude Code shows in rules, as well as its own.
func TestClaudeRulesNameServersAsShown(t *testing.T) {
	for rule, want := range map[string]string{
		"mcp__my_files_2": `{"command":"srv","disabled":true}`, "mcp__my_files_2__*": `{"command":"srv","disabled":true}`, "mcp__my files.2": `{"command":"srv","disabled":true}`,
		"mcp__my_files_2__rm": `{"command":"srv","excludeTools":["rm"]}`, "mcp__my files.2__rm": `{"command":"srv","excludeTools":["rm"]}`, "mcp__my_files_2__a__b": `{"command":"srv","excludeTools":["a__b"]}`,
		"mcp__my_files_20": `{"command":"srv"}`, "mcp__my_files": `{"command":"srv"}`, "mcp__": `{"command":"srv"}`, "my_files_2": `{"command":"srv"}`,
	} {
		servers := []imports.Server{{Name: "my files.2", JSON: []byte(`{"command":"srv"}`)}}
		(Importer{}).Files("claude", "/srv/project", nil)[0].Switch(servers, switchFile(t, `{"permissions":{"deny":["`+rule+`"]}}`))
		if s := servers[0]; string(s.JSON) != want {
			t.Errorf("%s: %s", rule, s.JSON)
		}
	}
}

func TestToolPrefix(t *testing.T) {
	for program, want := range map[string]string{
		"claude": "mcp__my_files__", "codex": "mcp__my_files__", "gemini": "mcp_my_files_", "opencode": "my_files_", "vscode": "", "unknown": "",
	} {
		p := Importer{}.Program(program)
		if got := p.ToolPrefix("my files"); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
	if got := (*imports.Program)(nil).ToolPrefix("a"); got != "" {
		t.Errorf("no program: %q", got)
	}
}
