package serverscmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

func newAddJSONCommand(e *cli.Env) *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:   "add-json [NAME] [JSON]",
		Short: "Add MCP servers from the JSON in their documentation",
		Long: editHelp(`Add MCP servers to a settings file, your own by default.

JSON has the form shown in servers' documentation: {"mcpServers": {…}}, also those
of VS Code ("mcp": {"servers": …}), Zed and opencode, a single entry with its name,
with or without braces around, or an entry without a name, for which you give NAME.
Without JSON, or with -, it is read from stdin. Either all servers are added or none.
toolreg connects to each at once, as servers add does.`, editCodes),
		Example: `  toolreg servers add-json '{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}}}'
  toolreg servers add-json github '{"type": "http", "url": "https://api.githubcopilot.com/mcp/"}'
  toolreg servers add-json < claude_desktop_config.json`,
		Args: cli.ArgsBetween(0, 2, "at most a NAME and JSON"),
		RunE: func(cmd *cobra.Command, argv []string) error {
			all, err := readServers(e.IO, argv)
			if err != nil {
				return err
			}
			return t.run(cmd.Context(), e, all, true)
		},
	}
	t.flags(cmd)
	return cmd
}

// readServers reads the servers from the arguments or from stdin.
func readServers(ios *cli.IO, argv []string) (additions, error) {
	const hint = `toolreg servers add-json NAME '{"command": "npx", "args": ["-y", "x"]}'`
	name, data := "", "-"
	isJSON := func(s string) bool {
		s = strings.TrimSpace(s)
		return s != "" && strings.Contains("{\"`", s[:1])
	}
	switch {
	case len(argv) == 2:
		name, data = argv[0], argv[1]
	case len(argv) == 1 && isJSON(argv[0]):
		data = argv[0]
	case len(argv) == 1 && argv[0] != "-":
		name = argv[0]
	}
	if data == "-" {
		if ios.InTTY {
			return nil, &cli.UsageError{Err: errors.New("give the JSON as an argument or on stdin"), Hint: hint}
		}
		read, err := io.ReadAll(io.LimitReader(ios.In, document.MaxFile))
		if err != nil {
			return nil, fmt.Errorf("reading stdin: %w", err)
		}
		data = string(read)
	}
	servers, err := agents.Pasted([]byte(data), name)
	if err != nil {
		return nil, &cli.UsageError{Err: err, Hint: hint}
	}
	if len(servers) == 0 {
		return nil, &cli.UsageError{Err: errors.New("the JSON has no servers"), Hint: hint}
	}
	var all additions
	for _, s := range servers {
		if err := settings.CheckServerName(s.Name); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		if s.Problem != "" {
			return nil, &cli.UsageError{Err: fmt.Errorf("server %q cannot be added: %s", s.Name, s.Problem)}
		}
		all = append(all, edit.Change{Name: s.Name, Entry: s.JSON})
	}
	return all, nil
}
