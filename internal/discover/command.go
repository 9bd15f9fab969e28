package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
)

// CommandOptions are the options of a project's discovery and call commands.
type CommandOptions struct {
	Options
	// Discovery and Call are the settings toolDiscoveryCommand and
	// toolCallCommand, unexpanded. Discovery is required; without Call the tools
	// are listed but cannot be called.
	Discovery, Call settings.Command
	// Expand expands the words of a command when it is used.
	Expand func(settings.Command) ([]string, error)
}

// Environment variables of the commands.
const (
	envTool        = "TOOLREG_TOOL"
	envProjectRoot = "TOOLREG_PROJECT_ROOT"
)

// NewCommand returns the source of the tools that a project's discovery command
// prints. Its name is "command". It holds no resources and starts nothing
// before Discover. If the command fails, the error wraps
// [registry.ErrSourceFailed].
func NewCommand(opts CommandOptions) registry.Source {
	opts.Limits = opts.Limits.orDefault()
	return &command{opts: opts}
}

type command struct{ opts CommandOptions }

// Name returns "command".
func (c *command) Name() string { return registry.SourceCommand }

// Discover runs the discovery command and parses its output.
func (c *command) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if err := c.opts.Discovery.Err; err != nil {
		return nil, nil, err
	}
	argv, err := c.expand(c.opts.Discovery)
	if err != nil {
		return nil, nil, c.fail(err)
	}
	i := Invocation{Argv: argv, Dir: c.opts.ProjectRoot,
		Env: append(slices.Clone(c.opts.Env), envProjectRoot+"="+c.opts.ProjectRoot)}
	var found *declarations
	err = i.readOutput(ctx, &c.opts.Options, func(stdout []byte) (err error) {
		found, err = parseDeclarations(stdout, c.opts.Limits)
		return err
	})
	if err != nil {
		return nil, nil, c.fail(err)
	}
	if len(found.tools) > 0 && !c.opts.Call.IsSet() && c.opts.Call.Err == nil {
		found.diagnose(registry.SeverityWarning, "no_call_command", "",
			"toolCallCommand is not set, so discovered tools can be listed but not called",
			"set toolCallCommand to the program that runs a tool by its name")
	}
	tools := make([]registry.Tool, len(found.tools))
	for i := range found.tools {
		d := &found.tools[i]
		r, err := readRunning(d.fields, DefaultTimeout, c.opts.Evaluator)
		if err != nil && d.quarantine == nil {
			found.spoil(d, err, "")
		}
		tools[i] = c.tool(ctx, d, r)
	}
	return tools, found.diagnostics(), nil
}

func (c *command) tool(ctx context.Context, d *declaration, r running) registry.Tool {
	def := d.definition
	def.Source = registry.SourceCommand
	def.Description += c.appendix(d.original)
	t := registry.Tool{Definition: def, Identity: c.identity(), Standing: registry.Standing{Quarantine: d.quarantine}}
	t.Program, t.Folder = registry.ProgramDiscovery, c.opts.ProjectRoot
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return c.call(ctx, d, r.isResult, call)
	}
	r.apply(ctx, &t, c.opts.Discovery.Origin.String(), c.opts.Context)
	return t
}

// identity returns the identity of every tool of this source. The words are not
// expanded, because a variable may contain a secret, and secrets are masked.
func (c *command) identity() json.RawMessage {
	return encode(struct {
		Discovery []string `json:"discovery"`
		Call      []string `json:"call"`
	}{secret.Args(c.opts.Discovery.Argv), secret.Args(c.opts.Call.Argv)})
}

// expand returns the argv of a command when it is used.
func (c *command) expand(cmd settings.Command) ([]string, error) {
	if !cmd.IsSet() {
		return nil, errors.New("no command is set")
	}
	argv, err := c.opts.Expand(cmd)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("the command is empty once its variables are expanded")
	}
	return argv, nil
}

// asWritten returns the line in the settings, or the list with words quoted where necessary, for
// messages and models. Secrets are masked.
func (c *command) asWritten(cmd settings.Command) string {
	if cmd.Line != "" {
		return c.opts.Hide(secret.Line(cmd.Line, nil))
	}
	words := secret.Args(cmd.Argv)
	for i, w := range words {
		words[i] = quoteWord(w)
	}
	return c.opts.Hide(strings.Join(words, " "))
}

// quoteWord quotes a word like a POSIX shell if necessary.
func quoteWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
			r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-$", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// appendix returns the text that is appended to each description. It tells a model
// how the tool runs and what a failure looks like. The wording is Gemini CLI's,
// because users' prompts refer to it.
func (c *command) appendix(name string) string {
	call := ""
	if c.opts.Call.IsSet() {
		call = fmt.Sprintf("When called, this tool will execute the command `%s %s` on project root.\n",
			c.asWritten(c.opts.Call), name)
	}
	return "\n\nThis tool was discovered from the project by executing the command `" +
		c.asWritten(c.opts.Discovery) + "` on project root.\n" + call + appendixEnd
}

const appendixEnd = `Tool discovery and call commands can be configured in project or user settings.

When called, the tool call command is executed as a subprocess.
On success, tool output is returned as a json string.
Otherwise, the following information is returned:

Stdout: Output on stdout stream. Can be ` + "`(empty)`" + ` or partial.
Stderr: Output on stderr stream. Can be ` + "`(empty)`" + ` or partial.
Error: Error or ` + "`(none)`" + ` if no error was reported for the subprocess.
Exit Code: Exit code or ` + "`(none)`" + ` if terminated by signal.
Signal: Signal number or ` + "`(none)`" + ` if no signal was received.
`

// fail returns an error with the command, the origin of its setting and the reason.
func (c *command) fail(cause error) error {
	return sourceFailed(cause, "discovery command %q (toolDiscoveryCommand, %s): %s",
		c.asWritten(c.opts.Discovery), c.opts.Discovery.Origin, cause)
}

// call runs the call command for one tool, with its original name as the last
// argument and the params on stdin. If the tool prints whole results, stderr is
// ignored unless the command fails.
func (c *command) call(ctx context.Context, d *declaration,
	isResult bool, call registry.Call) (registry.Result, error) {
	if err := c.opts.Call.Err; err != nil {
		return registry.Result{}, err
	}
	if !c.opts.Call.IsSet() {
		return registry.Result{}, sourceFailed(nil,
			"tool %q was discovered, but toolCallCommand is not set; set it to the program that runs a tool by its name",
			d.definition.Name)
	}
	argv, err := c.expand(c.opts.Call)
	if err != nil {
		return registry.Result{}, sourceFailed(err,
			"call command %q (toolCallCommand, %s): %s", c.asWritten(c.opts.Call), c.opts.Call.Origin, err)
	}
	spec := process.Spec{
		Argv:  append(slices.Clone(argv), d.original),
		Dir:   c.opts.ProjectRoot,
		Env:   append(slices.Clone(c.opts.Env), envProjectRoot+"="+c.opts.ProjectRoot, envTool+"="+d.original),
		Stdin: paramsOf(call),
	}
	return c.opts.runTool(ctx, &spec, d, isResult, true, call), nil
}
