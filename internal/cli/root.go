package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/builtin"
	"github.com/toolreg/toolreg/internal/builtin/shell"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
)

const rootLong = `One registry for every tool of an LLM agent: built-in tools, plugins, the commands
of a project and MCP servers. List the tools, declare them to any model provider,
and run them with validated params, limits and confirmation.`

// Group is a group of commands in the help of the program. Commands in a group
// without Title are hidden.
type Group struct {
	Title    string
	Commands []Command
}

// Command builds a command. If the first word of the command line after global flags is
// Name, no other command is built. Name is empty for commands that need the others.
type Command = struct {
	Name string
	New  func(*Env) *cobra.Command
}

// addCommands adds only the commands that a command line needs: building all takes a twentieth of a
// short run.
func (p *Program) addCommands(root *cobra.Command, e *Env) {
	name := firstWord(root.PersistentFlags(), e.Argv)
	wanted := func(c Command) bool { return c.Name == name && name != "" }
	all := !slices.ContainsFunc(p.Commands, func(g Group) bool { return slices.ContainsFunc(g.Commands, wanted) })
	for _, g := range p.Commands {
		if g.Title != "" {
			root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		}
		for _, c := range g.Commands {
			if all || wanted(c) {
				cmd := c.New(e)
				cmd.GroupID = g.Title
				root.AddCommand(cmd)
			}
		}
	}
}

// firstWord returns the first word of a command line that is neither a flag nor
// the value of one; "" if there is none, or if a flag is unknown.
func firstWord(flags *pflag.FlagSet, argv []string) string {
	for i := 0; i < len(argv); i++ {
		word := argv[i]
		name, long := strings.CutPrefix(word, "--")
		switch f := flags.Lookup(name); {
		case !strings.HasPrefix(word, "-"):
			return word
		case long && strings.Contains(name, "="):
		case long && f == nil:
			return ""
		case long && f.NoOptDefVal == "": // the next word is its value
			i++
		}
	}
	return ""
}

func newRootCommand(e *Env, p *Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "toolreg",
		Short: "One registry for every tool of an LLM agent",
		Long:  rootLong,
		Example: `  toolreg list
  toolreg call read_file file_path=go.mod limit=3
  toolreg servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  toolreg schema --format anthropic`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if len(argv) > 0 {
				return unknownCommand(cmd, argv[0])
			}
			if shown, err := cmd.Flags().GetBool("version"); shown || err != nil {
				return errors.Join(err, e.printVersion())
			}
			if p.Pick != nil && e.Person.fullScreen() {
				return p.Pick(cmd.Context(), e)
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return e.prepare(cmd) },
	}
	root.SetIn(e.IO.In)
	root.SetOut(e.IO.Out)
	root.SetErr(e.IO.Err)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true // completioncmd has ours
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	globalFlags(root)
	root.Flags().Bool("version", false, "print the version")
	p.addCommands(root, e)
	root.AddCommand(newTopic(e, "exit-codes", "Exit codes", func(int) string { return exitCodesHelp }),
		newTopic(e, "flags", "Flags that every command takes",
			func(width int) string { return FlagsHelp(root, width) }),
		newTopic(e, "params", "How to give params", func(int) string { return ParamsHelp }),
		newTopic(e, "naming", "How tools are named", func(int) string { return namingHelp }),
		newTopic(e, "rules", "Rules that allow, ask and deny", func(int) string { return rulesHelp }),
		newTopic(e, "sandbox", "What programs may do in the sandbox", func(int) string { return sandboxHelp }),
		newTopic(e, "serving", "How to offer the tools to agents", func(int) string { return servingHelp }))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if e.helpErr = unknownSubcommand(cmd); e.helpErr != nil {
			return
		}
		e.pageHelp(cmd)
		// Program.Run reports write errors.
		_ = e.IO.Out.WriteStyled(HelpPage(cmd, e.IO.WrapWidth(), e.IO.Color(e.IO.OutTTY)))
	})
	root.SetHelpCommand(newHelpCommand())
	return root
}

// globalFlags defines the flags that every command has. settings.ResolveGlobals reads
// their values and adds those of the environment.
func globalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringArray("settings", nil, "also read this settings `file` (- for stdin) and trust it (repeatable)")
	f.Bool("no-user-settings", false, "do not read the user's settings")
	f.Bool("no-project-settings", false, "do not read the project's settings")
	f.StringArray("import", nil,
		"show what another `program` gets, or, with --preset and with call, add its MCP servers: "+
			strings.Join(agents.Importer{}.Programs(), ", "))
	f.StringArray("mcp", nil,
		"add an MCP server for this run: a `URL` or a command line, after NAME= to name it (repeatable)")
	f.Bool("trust-project", false, "trust the project's settings for this run")
	f.String("root", "", "project root `folder`; default the nearest parent with .toolreg or .git")
	f.Bool("json", false, "print JSON")
	f.String("jq", "", "filter the JSON output with a jq `expression`")
	f.BoolP("yes", "y", false, "allow every call that would be asked about; what is denied stays denied")
	f.String("approval-mode", "", "approval `mode`: default, auto-edit, plan or yolo")
	f.Bool("non-interactive", false, "never ask; calls that need an answer fail with exit code 6")
	f.Duration("timeout", 0, "time limit of a call, such as 30s; 0 for none")
	f.Duration("connect-timeout", 30*time.Second, "time limit for connecting to each server; 0 for none")
	f.Bool("locked", false, "refuse tools that differ from toolreg.lock")
	f.Bool("refresh", false, "ignore cached tool lists; contact every source and update the cache")
	f.Bool("cached", false, "use cached tool lists of any age; contact no source")
	f.Bool("fresh", false, "use no kept servers; start separate ones for this run")
	f.String("record", "", "write what servers, APIs, plugins and commands answer to this `file`")
	f.String("replay", "",
		"answer from a recording instead of servers, APIs, plugins and commands: a `file` of --record")
	f.String("channel", "", "`name` of the agent's channel")
	f.StringArray("context", nil, "`k=v` for the factories and conditions of plugins (repeatable)")
	f.BoolP("verbose", "v", false, "print progress and details on stderr")
	f.BoolP("quiet", "q", false, "print no warnings on stderr")
	f.BoolP("help", "h", false, "show the help of a command")
	f.String("color", "auto", "color output `when`: auto, always or never")
	complete.Flag(root, "settings", complete.Files)
	complete.Flag(root, "root", complete.Dirs)
	complete.Flag(root, "record", complete.Files)
	complete.Flag(root, "replay", complete.Files)
	complete.Flag(root, "mcp", complete.Words())
	complete.Flag(root, "import", complete.Words(agents.Importer{}.Programs()...))
	complete.Flag(root, "approval-mode", complete.Words(table.ApprovalModes()...))
	complete.Flag(root, "color", complete.Words("auto", "always", "never"))
	f.Bool("no-pager", false, "do not show long output in a pager")
	connecting := []string{"call", "discover", "doctor", "list", "lock", "rpc", "run", "schema", "search", "serve",
		"servers", "servers add", "servers prompt", "servers read", "servers test", "why"}
	loading := []string{"call", "discover", "list", "lock", "plugins", "rpc", "run", "schema", "search", "serve", "why"}
	recording := []string{"call", "discover", "list", "pick", "rpc", "run", "schema", "search", "serve", "why"}
	f.Lookup("connect-timeout").Annotations = map[string][]string{usedBy: connecting}
	f.Lookup("record").Annotations = map[string][]string{usedBy: recording}
	f.Lookup("replay").Annotations = map[string][]string{usedBy: recording}
	f.Lookup("channel").Annotations = map[string][]string{usedBy: loading}
	f.Lookup("context").Annotations = map[string][]string{usedBy: loading}
	MarkRare(f, "record", "replay", "channel", "context")
}

// flagError returns a usage error for a flag, which suggests similar flags.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedName()) > 1 {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := registry.Near(unknown.GetSpecifiedName(), known); len(near) > 0 {
			err = fmt.Errorf("%w; did you mean --%s?", err, strings.Join(near, ", --"))
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := invalid.GetFlag()
		if want := map[string]string{"bool": "true or false", "duration": "a duration such as 30s",
			"int": "a whole number"}[f.Value.Type()]; want != "" {
			err = fmt.Errorf("--%s: expected %s, got %q", f.Name, want, invalid.GetValue())
			if _, notSeconds := strconv.ParseFloat(invalid.GetValue(), 64); f.Value.Type() == "duration" &&
				notSeconds == nil {
				return &UsageError{Err: err,
					Hint: fmt.Sprintf("a number needs a unit: --%s %ss is in seconds", f.Name, invalid.GetValue())}
			}
		}
	}
	return &UsageError{Err: err, Hint: "see " + cmd.CommandPath() + " --help"}
}

// ParamsHelp is the text of `toolreg help params`.
const ParamsHelp = `Params are one JSON object. They come from one of

  --params JSON        the object itself
  --params-file FILE   a file; - is stdin
  k=v …                arguments, alone or overriding --params or --params-file
  stdin                if it is not a terminal, none of the above is given, and the
                       tool declares params

Arguments are typed by the tool's schema:

  limit=3              a number if the schema expects one, otherwise text
  tags=a tags=b        a list if the schema expects one
  filter:='{"a":1}'    JSON, used literally
  content=@notes.md    the content of a file; @- is stdin, @@x the text @x
  page.size=10         {"page":{"size":10}}

Empty input means {}.
`

// PresetFlag adds --preset, which restricts the registry of the command.
func PresetFlag(cmd *cobra.Command, preset *string) {
	cmd.Flags().StringVar(preset, "preset", "",
		"only the tools of this `preset`, or of several with commas: "+strings.Join(builtin.Presets(), ", "))
	complete.Flag(cmd, "preset", complete.Presets)
}

// InternalCommands returns the commands that toolreg starts for itself. They read no settings and no
// flags, because their environment and command line belong to others.
func InternalCommands() []Command {
	internal := func(name string, run func(*Env, *cobra.Command, []string) error) Command {
		return Command{name, func(e *Env) *cobra.Command {
			return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true,
				PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
				RunE:              func(cmd *cobra.Command, argv []string) error { return run(e, cmd, argv) }}
		}}
	}
	return []Command{
		// It manages a background command of run_shell_command.
		internal(KeepCommand, func(_ *Env, cmd *cobra.Command, argv []string) error {
			if err := shell.Keep(cmd.Context(), argv); err != nil {
				return &UsageError{Err: err, Hint: "run_shell_command with background: true starts it"}
			}
			return nil
		}),
		// It keeps an MCP server between runs.
		internal(KeepServerCommand, func(_ *Env, cmd *cobra.Command, _ []string) error {
			return sources.KeepServer(cmd.Context(), os.Stdin, func(err error) error {
				if err != nil {
					_, _ = io.WriteString(os.Stdout, err.Error()) // for the run that waits
				}
				return process.CloseStreams()
			})
		}),
		// It reads a jq expression of a plugin or project and its input from stdin and evaluates it.
		internal(EvaluateCommand, func(e *Env, cmd *cobra.Command, _ []string) error {
			return jq.Evaluate(cmd.Context(), e.IO.In, e.IO.pipe)
		}),
		internal(ScriptCommand,
			func(_ *Env, cmd *cobra.Command, _ []string) error { return script.Execute(cmd.Context()) }),
	}
}

// Program is what does not depend on the command line.
type Program struct {
	Version  string  // "" means the version of the module that was built
	Commands []Group // in the order of the help
	// Pick runs if there is no command and a person is at the terminal;
	// otherwise the help is shown.
	Pick func(context.Context, *Env) error
}

// Complete completes the words of commands.
func (e *Env) Complete() complete.Completer {
	return complete.Completer{
		Load: e.completionSettings, Open: e.completionSession, Absolute: e.Config.Absolute}
}

func (e *Env) completionSettings(cmd *cobra.Command) (*settings.Settings, error) {
	if err := e.prepareCompletion(cmd); err != nil {
		return nil, err
	}
	set, _, err := e.Config.Load(cmd.Context())
	return set, err
}

// completionSession returns a session that starts nothing.
func (e *Env) completionSession(cmd *cobra.Command) (*engine.Session, error) {
	if err := e.prepareCompletion(cmd); err != nil {
		return nil, err
	}
	return e.Engine.Session(cmd.Context(),
		SessionOptions{Options: engine.Options{Still: true, Preset: presetOf(cmd.Flags())}, InDocs: true})
}

// prepareCompletion reads the global flags. Nothing is asked or printed.
func (e *Env) prepareCompletion(cmd *cobra.Command) error {
	if err := e.prepare(cmd); err != nil {
		return err
	}
	e.Person.NonInteractive, e.IO.Quiet, e.IO.ErrTTY = true, true, false
	return nil
}

// presetOf returns the preset on the line, "" if it is not valid: the command
// reports that when it runs.
func presetOf(f *pflag.FlagSet) string {
	preset, err := f.GetString("preset")
	if err != nil || engine.CheckPreset(preset) != nil {
		return ""
	}
	return preset
}
