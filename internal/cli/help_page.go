package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/ui"
)

// Topic is the annotation of a command with the help topic that its help ends by naming.
const Topic = "topic"

// HelpPage returns the help of a command, wrapped at a width.
func HelpPage(cmd *cobra.Command, width int, color bool) string {
	h := helpText{color: color}
	h.WriteString(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short)) + "\n")
	h.section("Usage", usageLines(cmd))
	for _, g := range cmd.Groups() {
		h.section(g.Title, commandLines(cmd, g.ID))
	}
	h.section("Commands", commandLines(cmd, ""))
	h.section("Flags", OwnFlags(cmd).FlagUsagesWrapped(width))
	h.section("Examples", cmd.Example)
	more := `"toolreg help flags" lists the flags that every command takes.`
	if !cmd.HasParent() {
		h.section("Help topics", topicLines(cmd))
		more = `"toolreg help COMMAND" explains a command, "toolreg help TOPIC" a topic.`
	}
	if topic := cmd.Annotations[Topic]; topic != "" {
		more += fmt.Sprintf("\n\"toolreg help %s\" explains more.", topic)
	}
	h.WriteString("\n" + more + "\n")
	return h.String()
}

// helpText builds a help page.
type helpText struct {
	strings.Builder
	color bool
}

// section adds lines under a heading, if there are any.
func (h *helpText) section(title, lines string) {
	if lines = strings.TrimRight(lines, "\n"); lines != "" {
		heading := ui.Paint([]ui.Span{{Text: title + ":", Style: ui.Bold}}, h.color)
		h.WriteString("\n" + heading + "\n" + lines + "\n")
	}
}

// usageLines returns the usage lines of a command, with and without a subcommand.
func usageLines(cmd *cobra.Command) string {
	lines := ""
	if cmd.HasParent() && cmd.Runnable() {
		lines = "  " + cmd.UseLine() + "\n"
	}
	if cmd.HasAvailableSubCommands() {
		lines += "  " + cmd.CommandPath() + " COMMAND [flags]\n"
	}
	return lines
}

// commandLines lists the subcommands of a group; "" is the group of the others.
func commandLines(cmd *cobra.Command, group string) string {
	var shown []*cobra.Command
	for _, sub := range cmd.Commands() {
		if sub.GroupID == group && sub.IsAvailableCommand() && sub.Name() != "help" {
			shown = append(shown, sub)
		}
	}
	return nameLines(shown)
}

// topicLines lists the help pages that are not about a command.
func topicLines(root *cobra.Command) string {
	return nameLines(slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return !c.IsAdditionalHelpTopicCommand() }))
}

func nameLines(commands []*cobra.Command) string {
	width := 0
	for _, c := range commands {
		width = max(width, len(c.Name()))
	}
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, c.Name(), c.Short)
	}
	return b.String()
}

// usedBy is the annotation of a global flag that only some commands use, with the paths of
// these commands. Every command accepts the flag, but only their help shows it.
const usedBy = "used by"

// OwnFlags returns the flags that the help of a command shows: those that only it has, and
// the global ones that not every command uses.
func OwnFlags(cmd *cobra.Command) *pflag.FlagSet {
	cmd.LocalFlags() // adds those of the parents
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(f.Annotations[usedBy], path) || cmd.Root().PersistentFlags().Lookup(f.Name) == nil {
			own.AddFlag(f)
		}
	})
	return own
}

// GlobalFlags returns the flags that every command uses.
func GlobalFlags(root *cobra.Command) *pflag.FlagSet {
	all := pflag.NewFlagSet(root.Name(), pflag.ContinueOnError)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[usedBy] == nil {
			all.AddFlag(f)
		}
	})
	return all
}
