package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings"
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
		"not JSON":                    {`{"projects": `, server, server},
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
			servers := []settings.ImportedServer{{Name: "a", JSON: []byte(server)}}
			f.Switch(servers, [][]byte{[]byte(test.file)})
			got = append(got, string(servers[0].JSON))
		}
		if diff := cmp.Diff([]string{test.user, test.project}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
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
	if got := (*settings.Program)(nil).ToolPrefix("a"); got != "" {
		t.Errorf("no program: %q", got)
	}
}
