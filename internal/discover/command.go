package discover

import (
	"cmp"
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
	"github.com/toolreg/toolreg/internal/text"
)

// Options are what the programs that declare tools are run with.
type Options struct {
	// Context is the JSON object that the conditions of tools refer to. Factories receive it on stdin.
	Context json.RawMessage
	// ProjectRoot is the absolute path that programs receive. The discovery and call commands run there.
	ProjectRoot string
	// Env is the complete environment of the programs, except for TOOLREG_TOOL, TOOLREG_PLUGIN and
	// TOOLREG_PROJECT_ROOT, which are added.
	Env []string
	// Timeout limits discovery; 0 means no limit (setting
	// toolDiscoveryTimeout). A call is limited by [DefaultTimeout] or the
	// timeout of its tool.
	Timeout time.Duration
	Limits  Limits
	// Confine is the sandbox for programs that declare tools; nil means none.
	Confine process.Confiner
	// Hide masks the secrets of the settings in what such a program says about a failure, and in
	// the discovery command as it is shown. nil means it masks none.
	Hide func(string) string
	// Outputs caches the output of such programs. If nil, they always run.
	Outputs Outputs
	// Evaluator evaluates the expressions of declarations; see [jq.Expression.Isolated].
	Evaluator []string
}

// orDefault returns the options with what was not given replaced by its default.
func (o Options) orDefault() Options {
	o.Limits = o.Limits.orDefault()
	if len(o.Context) == 0 {
		o.Context = json.RawMessage("{}")
	}
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	return o
}

// CommandOptions are the options of a project's discovery and call commands.
type CommandOptions struct {
	Options
	// Discovery and Call are the settings toolDiscoveryCommand and
	// toolCallCommand, unexpanded. Discovery is required; without Call the tools
	// are listed but cannot be called.
	Discovery, Call settings.Command
	// Expand expands the words of a command when it is used. If nil, the words are
	// used unchanged.
	Expand func(settings.Command) ([]string, error)
}

// Outputs is the discovery cache for the output of programs that declare tools.
type Outputs interface {
	// Load returns cached output; ok is false if the program has to run. An error
	// means that the program must not run or failed recently.
	Load(context.Context, Invocation) (stdout []byte, ok bool, err error)
	// Save stores usable output of a run, or why the run failed.
	Save(ctx context.Context, i Invocation, stdout []byte, failure error)
}

// Invocation is a command with its folder and environment.
type Invocation struct {
	Argv  []string
	Dir   string
	Env   []string // the complete environment
	Stdin []byte
}

// readOutput reads the output of a program that declares tools: what is cached, or that of a run, which it
// then caches.
func (i Invocation) readOutput(ctx context.Context, o *Options, read func([]byte) error) error {
	if o.Outputs != nil {
		if stdout, ok, err := o.Outputs.Load(ctx, i); err != nil {
			return err
		} else if ok {
			return read(stdout)
		}
	}
	stdout, err := i.runProgram(ctx, o)
	if err == nil {
		err = read(stdout)
	}
	if o.Outputs != nil && ctx.Err() == nil {
		o.Outputs.Save(ctx, i, stdout, err)
	}
	return err
}

// runProgram returns the output of a program that declares tools.
func (i Invocation) runProgram(ctx context.Context, o *Options) ([]byte, error) {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errDiscoveryTimeout)
		defer cancel()
	}
	out, err := o.Confine.Run(ctx, process.Spec{Argv: i.Argv, Dir: i.Dir, Env: i.Env, Stdin: i.Stdin,
		MaxOutput: o.Limits.Discovery})
	if err != nil || out.Err() != nil {
		return nil, i.failure(out, err, o)
	}
	return out.Stdout, nil
}

// Limits are limits on a source's programs and declarations.
type Limits struct {
	// Discovery limits stdout and stderr of a program that declares tools each,
	// in bytes; 0 means 10 MiB (setting limits.discoveryOutput).
	Discovery int64
	// Output limits stdout and stderr of a call each, in bytes; 0 means 64 MiB
	// (setting limits.result).
	Output int64
	// Tools limits the number of tools; 0 means 10,000 (setting limits.tools).
	Tools int
	// Schema limits a schema, in bytes; 0 means 1 MiB (setting limits.schema).
	Schema int64
}

// orDefault returns the limits with each 0 replaced by its default.
func (l Limits) orDefault() Limits {
	return Limits{
		Discovery: cmp.Or(l.Discovery, process.DefaultMaxOutput),
		Output:    cmp.Or(l.Output, 64<<20),
		Tools:     cmp.Or(l.Tools, 10_000),
		Schema:    cmp.Or(l.Schema, registry.MaxSchemaBytes),
	}
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
	opts.Options = opts.orDefault()
	if opts.Expand == nil {
		opts.Expand = func(c settings.Command) ([]string, error) { return c.Argv, nil }
	}
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
		var when condition
		if err == nil {
			when, err = readCondition(d.fields, c.opts.Evaluator)
		}
		if err != nil && d.quarantine == nil {
			found.spoil(d, err)
		}
		tools[i] = c.tool(d, r)
		tools[i].Unmet = when.unmet(ctx, c.opts.Context)
	}
	return tools, found.diagnostics(), nil
}

// tool converts a declaration to a tool.
func (c *command) tool(d *declaration, r running) registry.Tool {
	def := d.definition
	def.Source = registry.SourceCommand
	def.Description += c.appendix(d.original)
	t := registry.Tool{Definition: def, Identity: c.identity(), Standing: registry.Standing{Quarantine: d.quarantine}}
	t.Program, t.Folder = registry.ProgramDiscovery, c.opts.ProjectRoot
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return c.call(ctx, d, r.isResult, call)
	}
	r.apply(&t, c.opts.Discovery.Origin.String())
	return t
}

// identity returns the identity of every tool of this source. The words are not
// expanded, because a variable may contain a secret, and secrets are masked.
func (c *command) identity() json.RawMessage {
	data, err := json.Marshal(struct {
		Discovery []string `json:"discovery"`
		Call      []string `json:"call"`
	}{secret.Args(c.opts.Discovery.Argv), secret.Args(c.opts.Call.Argv)})
	if err != nil {
		return json.RawMessage("null") // cannot happen: strings always encode
	}
	return data
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

// asWritten formats a command for messages and models, with secrets masked.
func (c *command) asWritten(cmd settings.Command) string { return c.opts.Hide(asWritten(cmd)) }

// asWritten returns the line in the settings, or the list with words quoted where necessary. What
// is secret where it stands is masked.
func asWritten(cmd settings.Command) string {
	if cmd.Line != "" {
		return secret.Line(cmd.Line, nil)
	}
	words := secret.Args(cmd.Argv)
	for i, w := range words {
		words[i] = quoteWord(w)
	}
	return strings.Join(words, " ")
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

// errDiscoveryTimeout is the context's cause when discovery exceeds its time limit.
var errDiscoveryTimeout = errors.New("toolDiscoveryTimeout reached")

// failure is the error of a source that failed. It wraps [registry.ErrSourceFailed]
// and the cause.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{registry.ErrSourceFailed}
	}
	return []error{registry.ErrSourceFailed, f.cause}
}

// fail returns an error with the command, the origin of its setting and the reason.
func (c *command) fail(cause error) error {
	return &failure{
		text: fmt.Sprintf("discovery command %q (toolDiscoveryCommand, %s): %s",
			c.asWritten(c.opts.Discovery), c.opts.Discovery.Origin, cause),
		cause: cause,
	}
}

// failure returns the error of a program that failed to declare tools.
func (i Invocation) failure(o process.Outcome, err error, opts *Options) error {
	said := opts.Hide(quoteStderr(o.Stderr))
	var start *process.StartError
	switch {
	case errors.As(err, &start):
		return &failure{cause: err, text: fmt.Sprintf("cannot start %q in %s: %s", start.Program, i.Dir, start.Err)}
	case errors.Is(err, errDiscoveryTimeout):
		return fmt.Errorf("it was stopped after %v; raise toolDiscoveryTimeout if it needs longer%s", opts.Timeout, said)
	case errors.Is(err, process.ErrOutputLimit):
		overflowed := "stderr"
		if o.StdoutBytes > opts.Limits.Discovery {
			overflowed = "stdout"
		}
		return fmt.Errorf("it was killed at the size limit of %d bytes on %s (limits.discoveryOutput)%s",
			opts.Limits.Discovery, overflowed, said)
	case errors.Is(err, registry.ErrDenied): // it was not started
		return err
	case err != nil:
		return fmt.Errorf("it was stopped: %w%s", err, said)
	case o.Signal != "":
		return fmt.Errorf("it was ended by %s%s", o.Signal, said)
	}
	return fmt.Errorf("it ended with exit code %d%s", o.ExitCode, said)
}

// Limits on the part of a program's stderr that is shown.
const (
	shownLines = 5
	shownBytes = 1000
)

// quoteStderr quotes the last lines of stderr on one line, or says that stderr was
// empty.
func quoteStderr(stderr []byte) string {
	var lines []string
	for line := range strings.Lines(decode(stderr[max(0, len(stderr)-8<<10):])) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "; it printed nothing on stderr"
	}
	lines = lines[max(0, len(lines)-shownLines):]
	said := strings.Join(lines, " | ")
	if len(said) > shownBytes {
		said = text.Ellipsis + text.Tail(said, shownBytes)
	}
	return "; its stderr ends with: " + said
}
