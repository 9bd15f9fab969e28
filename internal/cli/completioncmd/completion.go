// Package completioncmd implements the command completion, which prints a
// script for a shell, and the hidden command complete, which that script runs
// when Tab is pressed. cobra finds the completions; this package quotes them
// for each shell and makes them safe to show.
package completioncmd

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
)

//go:embed scripts
var scripts embed.FS

// New returns the command completion.
func New(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for your shell",
		Long: `Print a script that makes a shell complete toolreg's commands and flags, tools and
their params, values, servers and settings when you press Tab.

  bash        in ~/.bashrc:                    eval "$(toolreg completion bash)"
  zsh         in ~/.zshrc, after compinit:     eval "$(toolreg completion zsh)"
  fish        in config.fish:                  toolreg completion fish | source
  PowerShell  in $PROFILE:
      toolreg completion powershell | Out-String | Invoke-Expression

Completion starts and contacts nothing: its words come from the settings, the
built-in tools, the manifests of plugins and what servers answered before. Tools
of MCP servers complete once a command such as "toolreg list" has listed them;
their prompts and resources, and the tools of discovery commands and factories,
only if cache.discovery is set, for example to 24h.

In bash, zsh and fish, Tab never runs what is on the command line. PowerShell
evaluates the line up to the cursor when you press Tab, subexpressions such as
$(…) included; what completion itself inserts is escaped.

Exit codes: 0, 2.`,
		Example: `  eval "$(toolreg completion bash)"
  toolreg completion fish > ~/.config/fish/completions/toolreg.fish
  toolreg completion zsh > ~/.zsh/completions/_toolreg`,
		Args:              cli.ArgsBetween(1, 1, "the name of a shell: bash, zsh, fish or powershell"),
		ValidArgsFunction: complete.Arg(complete.Words("bash", "zsh", "fish", "powershell")),
		RunE: func(cmd *cobra.Command, argv []string) error {
			script, err := scriptFor(cmd.Root(), argv[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(e.IO.Out, script)
			return err
		},
	}
}

// scriptFor returns the script for a shell. PowerShell's is cobra's.
func scriptFor(root *cobra.Command, shell string) (string, error) {
	switch shell {
	case "bash", "zsh", "fish":
		data, err := scripts.ReadFile("scripts/toolreg." + shell)
		return string(data), err
	case "powershell":
		var b strings.Builder
		err := root.GenPowerShellCompletionWithDesc(&b)
		return b.String(), err
	}
	return "", &cli.UsageError{Err: fmt.Errorf("unknown shell %q", shell), Hint: "one of bash, zsh, fish, powershell"}
}
