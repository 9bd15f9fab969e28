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

// MoreFlags is the line with which the help of a command names the flags that it leaves out.
const MoreFlags = `"toolreg help flags" lists the flags that every command takes, and those that few need.`

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
	more := MoreFlags
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

// rare is the annotation of a flag that few users need: "toolreg help flags" has it, and
// the help of its commands has not.
const rare = "rare"

// MarkRare leaves flags out of the help of a command, for those that few users need.
func MarkRare(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[rare] = []string{"true"}
	}
}

// OwnFlags returns the flags that the help of a command shows: those that only it has, and
// the global ones that not every command uses, without those that few users need.
func OwnFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	eachOwnFlag(cmd, func(f *pflag.Flag) {
		if f.Annotations[rare] == nil {
			own.AddFlag(f)
		}
	})
	return own
}

// eachOwnFlag visits the flags that only a command has, and the global ones that it uses
// and not every command.
func eachOwnFlag(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.LocalFlags() // adds those of the parents
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(f.Annotations[usedBy], path) || cmd.Root().PersistentFlags().Lookup(f.Name) == nil {
			visit(f)
		}
	})
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

// RareFlags returns the flags that few users need. Their usage ends with the commands that
// use them.
func RareFlags(root *cobra.Command) *pflag.FlagSet {
	found, users := map[string]*pflag.Flag{}, map[string][]string{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		eachOwnFlag(cmd, func(f *pflag.Flag) {
			if f.Annotations[rare] != nil {
				found[f.Name] = f
				users[f.Name] = append(users[f.Name], strings.TrimPrefix(cmd.CommandPath(), root.Name()+" "))
			}
		})
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(root)
	all := pflag.NewFlagSet(root.Name(), pflag.ContinueOnError)
	for name, f := range found {
		shown := *f
		shown.Usage += " (" + strings.Join(users[name], ", ") + ")"
		all.AddFlag(&shown)
	}
	return all
}

// FlagsHelp returns the text of "toolreg help flags".
func FlagsHelp(root *cobra.Command, width int) string {
	return GlobalFlags(root).FlagUsagesWrapped(width) +
		"\nFlags that few need, with the commands that use them\n\n" + RareFlags(root).FlagUsagesWrapped(width)
}
