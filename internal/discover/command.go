package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
)

// CommandOptions say how a project's discovery and call commands run.
type CommandOptions struct {
	// Discovery and Call are the settings toolDiscoveryCommand and
	// toolCallCommand, unexpanded. Discovery is required; without Call the tools
	// are listed but cannot be called.
	Discovery, Call settings.Command
	// Expand expands the words of a command at the moment of use. nil: the
	// words are used as they are.
	Expand func(settings.Command) ([]string, error)
	// ProjectRoot is where both commands run. Absolute.
	ProjectRoot string
	// Env is the whole environment of both commands, to which TOOLREG_TOOL and
	// TOOLREG_PROJECT_ROOT are added.
	Env []string
	// Timeout bounds discovery; 0 means no limit (setting
	// toolDiscoveryTimeout). A call has [DefaultTimeout] or what its tool names.
	Timeout time.Duration
	// MaxDiscovery bounds stdout and stderr of the discovery command each, in
	// bytes; 0 means 10 MiB.
	MaxDiscovery int64
	// MaxOutput bounds stdout and stderr of a call each, in bytes; 0 means
	// 64 MiB.
	MaxOutput int64
	// MaxTools bounds the number of tools; 0 means 10,000.
	MaxTools int
	// Outputs keeps what the discovery command prints. nil: it is run each time.
	Outputs Outputs
}

// Outputs keeps what a program printed that declares tools (spec section 10,
// discovery cache).
type Outputs interface {
	// Load returns what may stand for a run of the program; ok is false where it
	// is to be run. The error says that it may not be, or how it failed a moment ago.
	Load(context.Context, Invocation) (stdout []byte, ok bool, err error)
	// Save is given what a run printed that could be used, or why it could not.
	Save(ctx context.Context, i Invocation, stdout []byte, failure error)
}

// Invocation is one run of a program.
type Invocation struct {
	Argv  []string
	Dir   string
	Env   []string // the whole environment
	Stdin []byte
}

// read has read what a program prints: what outputs, which may be nil, keeps of
// it, or what run gives, which is kept then.
func (i Invocation) read(ctx context.Context, outputs Outputs, run func(context.Context, Invocation) ([]byte, error), read func([]byte) error) error {
	if outputs != nil {
		if stdout, ok, err := outputs.Load(ctx, i); err != nil {
			return err
		} else if ok {
			return read(stdout)
		}
	}
	stdout, err := run(ctx, i)
	if err == nil {
		err = read(stdout)
	}
	if outputs != nil && ctx.Err() == nil {
		outputs.Save(ctx, i, stdout, err)
	}
	return err
}

// Defaults of [CommandOptions].
const (
	DefaultMaxTools  = 10_000
	DefaultMaxOutput = 64 << 20
)

// Names of variables that the commands get (spec section 6.3).
const (
	envTool        = "TOOLREG_TOOL"
	envProjectRoot = "TOOLREG_PROJECT_ROOT"
)

// NewCommand returns the source of the tools that a project's discovery command
// prints. Its name is "command". It holds no resources, and starts nothing
// before Discover. A failure of the command is an error that wraps
// [registry.ErrSourceFailed].
func NewCommand(opts CommandOptions) registry.Source {
	if opts.MaxTools == 0 {
		opts.MaxTools = DefaultMaxTools
	}
	if opts.MaxOutput == 0 {
		opts.MaxOutput = DefaultMaxOutput
	}
	if opts.MaxDiscovery == 0 {
		opts.MaxDiscovery = process.DefaultMaxOutput
	}
	if opts.Expand == nil {
		opts.Expand = func(c settings.Command) ([]string, error) { return c.Argv, nil }
	}
	return &command{opts: opts}
}

type command struct{ opts CommandOptions }

// Name returns "command".
func (c *command) Name() string { return registry.SourceCommand }

// Discover runs the discovery command and reads what it prints.
func (c *command) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	if err := c.opts.Discovery.Err; err != nil {
		return nil, nil, err
	}
	argv, err := c.expand(c.opts.Discovery)
	if err != nil {
		return nil, nil, c.fail(err)
	}
	i := Invocation{Argv: argv, Dir: c.opts.ProjectRoot, Env: append(slices.Clone(c.opts.Env), envProjectRoot+"="+c.opts.ProjectRoot)}
	var found *declarations
	err = i.read(ctx, c.opts.Outputs, c.run, func(stdout []byte) (err error) {
		found, err = parseDeclarations(stdout, c.opts.MaxTools)
		return err
	})
	if err != nil {
		return nil, nil, c.fail(err)
	}
	if len(found.tools) > 0 && !c.opts.Call.IsSet() && c.opts.Call.Err == nil {
		found.diagnose(registry.SeverityWarning, "no_call_command", "", "toolCallCommand is not set, so discovered tools can be listed but not called",
			"set toolCallCommand to the program that runs a tool by its name")
	}
	tools := make([]registry.Tool, len(found.tools))
	for i := range found.tools {
		d := &found.tools[i]
		r, err := readRunning(d.fields, DefaultTimeout)
		if err != nil && d.quarantine == nil {
			found.spoil(d, err)
		}
		tools[i] = c.tool(d, r)
	}
	return tools, found.diagnostics(), nil
}

// tool makes a tool of a declaration.
func (c *command) tool(d *declaration, r running) registry.Tool {
	def := d.definition
	def.Source = registry.SourceCommand
	def.Description += c.appendix(d.original)
	t := registry.Tool{
		Definition: def,
		Identity:   c.identity(),
		Quarantine: d.quarantine,
		Run: func(ctx context.Context, call registry.Call) (registry.Result, error) {
			return c.call(ctx, d, r.isResult, call)
		},
	}
	r.apply(&t, c.opts.Discovery.Origin.String())
	return t
}

// identity is what stands behind every tool of this source. The words are
// unexpanded, since a variable may hold a secret, and what looks like one is
// masked.
func (c *command) identity() json.RawMessage {
	data, err := json.Marshal(struct {
		Discovery []string `json:"discovery"`
		Call      []string `json:"call"`
	}{secret.Args(c.opts.Discovery.Argv), secret.Args(c.opts.Call.Argv)})
	if err != nil {
		return json.RawMessage("null") // strings always encode
	}
	return data
}

// run returns what the discovery command prints.
func (c *command) run(ctx context.Context, i Invocation) ([]byte, error) {
	if c.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.opts.Timeout, errDiscoveryTimeout)
		defer cancel()
	}
	outcome, err := process.Run(ctx, process.Spec{Argv: i.Argv, Dir: i.Dir, Env: i.Env, MaxOutput: c.opts.MaxDiscovery})
	if err != nil || outcome.ExitCode != 0 || outcome.Signal != "" {
		return nil, c.ended(outcome, err)
	}
	return outcome.Stdout, nil
}

// expand gives the argv of a command at the moment of use.
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

// asWritten renders a command for people: the line of the settings, or the list
// with the words quoted that need it.
func asWritten(cmd settings.Command) string {
	if cmd.Line != "" {
		return cmd.Line
	}
	words := make([]string, len(cmd.Argv))
	for i, w := range cmd.Argv {
		words[i] = quoteWord(w)
	}
	return strings.Join(words, " ")
}

// quoteWord quotes like a POSIX shell where a shell would need it.
func quoteWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-$", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// appendix is the text behind each description that tells a model how the tool
// is run and how failures look (Gemini CLI's words, which users' prompts know).
func (c *command) appendix(name string) string {
	call := ""
	if c.opts.Call.IsSet() {
		call = fmt.Sprintf("When called, this tool will execute the command `%s %s` on project root.\n", asWritten(c.opts.Call), name)
	}
	return "\n\nThis tool was discovered from the project by executing the command `" + asWritten(c.opts.Discovery) + "` on project root.\n" +
		call + appendixEnd
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
