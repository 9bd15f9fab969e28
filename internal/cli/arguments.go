package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// NoArgs returns a usage error if there are arguments.
func NoArgs(cmd *cobra.Command, argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return unknownCommand(cmd, argv[0])
	}
	return Usage(fmt.Sprintf("%s takes no arguments, got %q", cmd.CommandPath(), argv[0]),
		"see "+cmd.CommandPath()+" --help")
}

// ArgsBetween requires from lo to hi arguments; hi < 0 means any number.
func ArgsBetween(lo, hi int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, argv []string) error {
		if len(argv) >= lo && (hi < 0 || len(argv) <= hi) {
			return nil
		}
		verb := " requires "
		if len(argv) > lo {
			verb = ": too many arguments; it takes "
		}
		return Usage(cmd.CommandPath()+verb+what, "see "+cmd.CommandPath()+" --help")
	}
}

// NearCommand returns the subcommand whose name is nearest to a word; "" if none is
// similar.
func NearCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if slices.ContainsFunc(sub.SuggestFor, func(other string) bool { return strings.EqualFold(other, word) }) {
			return sub.Name()
		}
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
		}
	}
	near := append(registry.Near(word, names), "")
	return near[0]
}

// unknownSubcommand returns an error if a command line with --help names a subcommand
// that does not exist.
func unknownSubcommand(cmd *cobra.Command) error {
	argv := cmd.Flags().Args()
	switch {
	case len(argv) == 0 || !cmd.HasSubCommands():
		return nil
	case !cmd.HasParent():
		return unknownCommand(cmd, argv[0])
	}
	return cmd.ValidateArgs(argv)
}

func unknownCommand(cmd *cobra.Command, name string) error {
	msg, hint := fmt.Sprintf("unknown command %q", name), "see "+cmd.CommandPath()+" --help"
	if near := NearCommand(cmd, name); near == name {
		msg = fmt.Sprintf("put the command %q before --", name)
	} else if near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	} else if !cmd.HasParent() {
		hint = "to call a tool of this name: toolreg call " + Quote(name) + "; " + hint
	}
	return Usage(msg, hint)
}

// CallLine returns the command line that calls a tool with params, in the form
// k=v if possible.
func CallLine(name string, def *registry.Definition, params []byte) string {
	line := "toolreg call " + Quote(ui.Line(name))
	arguments, ok := args.Format(params, def.InputSchema)
	if !ok {
		var compact bytes.Buffer
		if json.Compact(&compact, params) != nil {
			return line
		}
		return line + " --params " + Quote(string(text.EscapeJSON(compact.Bytes())))
	}
	return strings.TrimSuffix(line+" "+QuoteWords(arguments), " ")
}

// QuoteWords writes words for a command line.
func QuoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote is [text.ShellWord].
func Quote(word string) string { return text.ShellWord(word) }
