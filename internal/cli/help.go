package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/ui"
)

// ErrOwnHelp is returned by the function passed to [Env.Help] to show the
// command's regular help.
var ErrOwnHelp = errors.New("the command has help of its own")

// Help returns a help function that reads the global flags, calls show, and keeps its
// error for the end of the run. Cobra's help functions can do neither.
func (e *Env) Help(show func(*cobra.Command) error) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, argv []string) {
		err := e.prepare(cmd)
		if err == nil {
			err = show(cmd)
		}
		if errors.Is(err, ErrOwnHelp) {
			cmd.Root().HelpFunc()(cmd, argv)
			err = nil
		}
		e.helpErr = err
	}
}

// newHelpCommand is like cobra's, but an unknown page is an error, and topics
// are completed too.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND | TOPIC]",
		Short:   "Show the help of a command or a topic",
		Long:    "Show the help of a command or of a topic.",
		Example: "  toolreg help servers add\n  toolreg help params",
		ValidArgsFunction: func(cmd *cobra.Command, argv []string,
			_ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var out []cobra.Completion
			if page, rest, err := cmd.Root().Find(argv); err == nil && len(rest) == 0 {
				for _, sub := range page.Commands() {
					if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
						out = append(out, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, argv []string) error {
			page, rest, err := cmd.Root().Find(argv)
			switch {
			case err != nil || page == cmd.Root() && len(argv) > 0:
				return unknownCommand(cmd.Root(), argv[0])
			case len(rest) > 0 && page.HasSubCommands():
				return unknownCommand(page, rest[0])
			}
			return page.Help()
		},
	}
}

// newTopic returns a help page that is not about a command. text returns it, wrapped at
// the given width.
func newTopic(e *Env, name, title string, text func(width int) string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: title}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		e.pageHelp(cmd)
		fmt.Fprint(cmd.OutOrStdout(), title, "\n\n", text(e.IO.WrapWidth()))
	})
	return cmd
}

// pageHelp shows the help of a command in a pager if it is long.
func (e *Env) pageHelp(cmd *cobra.Command) {
	if e.prepare(cmd) == nil { // ignore wrong flags with --help
		e.IO.Page()
	}
}

// Topic is the annotation of a command that names the help topic at the end of its help.
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
		h.section("Help topics", nameLines(slices.DeleteFunc(slices.Clone(cmd.Commands()),
			func(c *cobra.Command) bool { return !c.IsAdditionalHelpTopicCommand() })))
		more = `"toolreg help COMMAND" explains a command, "toolreg help TOPIC" a topic.`
	}
	if topic := cmd.Annotations[Topic]; topic != "" {
		more += fmt.Sprintf("\n\"toolreg help %s\" explains more.", topic)
	}
	h.WriteString("\n" + more + "\n")
	return h.String()
}

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

// rare is the annotation of a flag that few users need. "toolreg help flags" shows it; the help of
// its commands does not.
const rare = "rare"

// MarkRare marks flags that few users need, so that the help of the command omits them.
func MarkRare(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[rare] = []string{"true"}
	}
}

// OwnFlags returns the flags that the help of a command shows: its own, and global flags that not
// every command uses, without those that few users need.
func OwnFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	eachOwnFlag(cmd, func(f *pflag.Flag) {
		if f.Annotations[rare] == nil {
			own.AddFlag(f)
		}
	})
	return own
}

// eachOwnFlag visits a command's own flags, and the global ones that it uses but not every command
// does.
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

// RareFlags returns the flags that few users need. The usage of each ends with the names of its
// commands.
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

const docs = "https://github.com/toolreg/toolreg/blob/main/docs/"

const rulesHelp = `The first rule that matches a call decides: allow, sandbox, ask or deny.

  policy:
    rules:
      - {tool: run_shell_command, command: git push, decision: ask}
      - {path: "secrets/**", decision: deny, reason: private}
      - {server: github, annotations: {readOnlyHint: true}, decision: allow}
    defaults: {network: deny}

A rule matches if all of its fields match: tool, source, server, category,
annotations, command, path, when (a jq expression over the params), client and
group. Rules with prompt or resource are about what servers offer besides tools.

The order is: --settings files, the settings of the system, the user and the
trusted project, then "always" answers, then policy.defaults by category. What
excludeTools and shell.banned deny stays denied in every approval mode.

  toolreg why TOOL k=v… --explain   every rule, and why it matches or not
  toolreg policy import claude      rules from the permissions of another agent

See ` + docs + `policy.md
`

const sandboxHelp = `In the sandbox a program reads the system's programs and the project, writes only
the project, and has no network. Keys, logins and shell startup files are out of
reach, so that it can run without a question. It needs Linux 6.12 or newer.

  policy:
    rules:
      - {tool: run_shell_command, decision: sandbox}
  sandbox:
    mode: auto                                  # off, auto or require
    shell: {network: ["proxy.example.com"], read: [~/data]}

A program reads the folders on PATH and the installations behind them, the caches
of go, npm, pip and cargo, git's settings and the workspace. It never reads
~/.ssh, ~/.aws, ~/.gnupg, ~/.npmrc, keyrings, and the files of browsers and of
toolreg, unless an entry of read names them.

  toolreg doctor            whether the sandbox is available, and what is missing
  toolreg why TOOL k=v…     whether a call would run in it

See ` + docs + `sandbox.md
`

const servingHelp = `toolreg serve offers the registry as one MCP server: over stdio to the program
that starts it, or with --http ADDR to many clients, which send a bearer token.

  toolreg serve --print-config claude     the entry for a client's settings
  toolreg serve --http 127.0.0.1:8080 --token-file tokens
  toolreg serve --expose search           three tools that find the others

A line of the token file is a name and a token. If a call needs
confirmation, the client's user is asked; a client that cannot ask gets an error
that names the rule.
Trust in a project is never asked about over MCP: run toolreg trust grant first.

See ` + docs + `serve.md
`

const namingHelp = `A tool is called by its registered name. Names have letters, digits, "_", "." and
"-", and at most 63 characters.

  read_file               a built-in tool, or a tool of any source with that name
  github__create_issue    the tool create_issue of the server github; always works
  deploy@1.2.0            one version of a tool

If the name of a server's tool is taken, the tool is registered as SERVER__TOOL.
Prefer this form in rules and in excludeTools: it cannot mean another server.
A plain name stays with the server that had it first, even while that server is
disabled or fails.

  toolreg list --all      every name, and the tools that a setting hides
  toolreg why TOOL        where a tool comes from

See ` + docs + `servers.md
`
