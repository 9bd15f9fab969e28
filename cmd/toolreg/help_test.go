package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
)

// Every command has a short and a long help with exit codes and examples, and every flag
// has a usage text.
func TestEveryCommandHasHelp(t *testing.T) {
	eachCommand(func(path string, cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		wrong := func(format string, args ...any) { t.Errorf("toolreg "+path+": "+format, args...) }
		if first := []rune(cmd.Short + " ")[0]; !unicode.IsUpper(first) || strings.HasSuffix(cmd.Short, ".") || len(cmd.Short) > 70 {
			wrong("Short must be a line that begins with a capital and has no full stop at its end, not %q", cmd.Short)
		}
		if len(cmd.Long) <= len(cmd.Short) || !strings.Contains(cmd.Long, "Exit codes: 0") {
			wrong("Long has no exit codes, or says no more than Short")
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(line)) > 86 {
				wrong("a line of Long is too long: %q", line)
			}
		}
		if cmd.Example == "" {
			wrong("no example")
		}
		for line := range strings.Lines(cmd.Example) {
			if line = strings.TrimRight(line, "\n"); !exampleLine.MatchString(line) {
				wrong("an example must be two spaces and a command line, not %q", line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				wrong("--%s has no usage text", f.Name)
			}
		})
		if cmd.HasSubCommands() && !cmd.Runnable() {
			wrong("it does nothing without a subcommand")
		}
	})
}

// exampleLine matches a line of examples: a command line that contains toolreg, or a
// comment.
var exampleLine = regexp.MustCompile(`^  (toolreg |# |.*\btoolreg )`)

// A command that is listed under another name would be unknown.
func TestCommandsAreListedUnderTheirNames(t *testing.T) {
	for _, g := range commands.Program("").Commands {
		for _, c := range g.Commands {
			if name := c.New(&cli.Env{}).Name(); c.Name != "" && c.Name != name {
				t.Errorf("the command %s is listed as %s", name, c.Name)
			}
		}
	}
}

// eachCommand visits every command of the program with its path.
func eachCommand(visit func(path string, cmd *cobra.Command)) {
	var walk func(prefix string, c *cobra.Command)
	walk = func(prefix string, c *cobra.Command) {
		path := strings.TrimSpace(prefix + " " + c.Name())
		visit(path, c)
		for _, sub := range c.Commands() {
			walk(path, sub)
		}
	}
	for _, g := range commands.Program("").Commands {
		for _, c := range g.Commands {
			walk("", c.New(&cli.Env{}))
		}
	}
}
