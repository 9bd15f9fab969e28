package servecmd

import (
	"fmt"
	"os"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/jsonx"
)

// clientConfig is the settings entry with which a program uses an MCP server.
type clientConfig struct {
	name string
	file string // file for the entry
	text string // %s is the path of toolreg as a JSON string
}

// clients returns the programs whose settings are known, in the format of their
// documentation of November 2026.
func clients() []clientConfig {
	const servers = `{"mcpServers":{"toolreg":{"command":%s,"args":["serve"]}}}`
	return []clientConfig{
		{"claude", ".mcp.json in the project, or ~/.claude.json", servers},
		{"gemini", ".gemini/settings.json in the project, or ~/.gemini/settings.json", servers},
		{"vscode", ".vscode/mcp.json in the project", `{"servers":{"toolreg":{"type":"stdio","command":%s,"args":["serve"]}}}`},
		{"cursor", ".cursor/mcp.json in the project, or ~/.cursor/mcp.json", servers},
		{"codex", "~/.codex/config.toml", "[mcp_servers.toolreg]\ncommand = %s\nargs = [\"serve\"]"},
		{"windsurf", "~/.codeium/windsurf/mcp_config.json", servers},
		{"opencode", "opencode.json in the project, or ~/.config/opencode/opencode.json", `{"mcp":{"toolreg":{"type":"local","command":[%s,"serve"]}}}`},
		{"zed", "settings.json of Zed", `{"context_servers":{"toolreg":{"command":%s,"args":["serve"]}}}`},
	}
}

func clientNames() []string {
	var names []string
	for _, c := range clients() {
		names = append(names, c.name)
	}
	return names
}

// config returns the settings entry for a client, and the file that it belongs in.
func config(client string) (text, file string, err error) {
	self, err := os.Executable()
	if err != nil {
		self = "toolreg"
	}
	for _, c := range clients() {
		if c.name == client {
			return fmt.Sprintf(c.text, jsonx.Quote(self)) + "\n", c.file, nil
		}
	}
	return "", "", &cli.UsageError{Err: fmt.Errorf("unknown client %q", client), Hint: "one of " + strings.Join(clientNames(), ", ")}
}
