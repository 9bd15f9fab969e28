// Package discover implements the sources of external tools other than MCP servers:
// a project's discovery command, plugins, and composites, which call other tools.
//
// A source runs programs through package process and converts their output to
// tools, with a diagnostic for each part that cannot be used. The output is
// untrusted: it is limited and checked piece by piece, and an invalid
// declaration never affects others. Schemas are passed on byte for byte.
package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	utf "golang.org/x/text/encoding/unicode"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
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
	// the discovery command as it is shown.
	Hide func(string) string
	// Outputs caches the output of such programs. If nil, they always run.
	Outputs Outputs
	// Evaluator evaluates the expressions of declarations; see [jq.Expression.Isolated].
	Evaluator []string
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
	ctx, cancel := timing.Limit(ctx, o.Timeout, errDiscoveryTimeout)
	defer cancel()
	out, err := o.Confine.Run(ctx, process.Spec{Argv: i.Argv, Dir: i.Dir, Env: i.Env, Stdin: i.Stdin,
		MaxOutput: o.Limits.Discovery})
	if err != nil || out.Err() != nil {
		return nil, i.failure(out, err, o)
	}
	return out.Stdout, nil
}

// failure returns the error of a program that failed to declare tools.
func (i Invocation) failure(o process.Outcome, err error, opts *Options) error {
	said := opts.Hide(quoteStderr(o.Stderr))
	var start *process.StartError
	switch {
	case errors.As(err, &start):
		return sourceFailed(err, "cannot start %q in %s: %s", start.Program, i.Dir, start.Err)
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

// errDiscoveryTimeout is the context's cause when discovery exceeds its time limit.
var errDiscoveryTimeout = errors.New("toolDiscoveryTimeout reached")

// sourceFailed returns the error of a source that failed; cause may be nil.
func sourceFailed(cause error, format string, args ...any) error {
	return &registry.Failure{Text: fmt.Sprintf(format, args...), Kind: registry.ErrSourceFailed, Cause: cause}
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

// decode decodes UTF-8 and replaces each invalid sequence with U+FFFD, as browsers
// and Node.js do. It keeps a byte order mark.
func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out, err := utf.UTF8.NewDecoder().Bytes(b)
	if err != nil {
		out = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return string(out)
}

// DefaultTimeout is the time limit for a call of a plugin's or discovered tool that
// has no timeout of its own.
const DefaultTimeout = 10 * time.Minute

// running has the fields of a declaration that say how the tool runs.
type running struct {
	timeout  time.Duration // 0 means no limit
	confirm  *confirmation // if nil, only the policy decides
	isResult bool          // stdout is a result as JSON, not text
	enabled  condition
}

// readRunning reads the fields timeout, confirm, output, channels and when of a
// declaration; timeout is the default, evaluator is for [jq.Expression.Isolated].
func readRunning(o object, timeout time.Duration, evaluator []string) (running, error) {
	r := running{timeout: timeout}
	var err error
	if raw := o["timeout"]; isPresent(raw) {
		if r.timeout, err = readDuration(raw); err != nil {
			return r, fmt.Errorf("its timeout is %w", err)
		}
	}
	if raw := o["output"]; isPresent(raw) {
		switch string(raw) {
		case `"text"`:
		case `"result"`:
			r.isResult = true
		default:
			return r, errors.New(`its output is neither "text" nor "result"`)
		}
	}
	if raw := o["confirm"]; isPresent(raw) {
		if r.confirm, err = readConfirmation(raw); err != nil {
			return r, fmt.Errorf("its confirm: %w", err)
		}
		r.confirm.when = r.confirm.when.Isolated(evaluator)
	}
	r.enabled, err = readCondition(o, evaluator)
	return r, err
}

// apply sets the fields of t accordingly; origin is the file that declares it, and about
// the context that its conditions refer to.
func (r running) apply(ctx context.Context, t *registry.Tool, origin string, about json.RawMessage) {
	t.Timeout, t.Unmet = r.timeout, r.enabled.unmet(ctx, about)
	if r.confirm == nil {
		return
	}
	t.Confirm = func(ctx context.Context, call registry.Call) registry.Asking {
		if reason := r.confirm.reason(ctx, call.Params); reason != "" {
			return registry.Asking{Reason: reason, Origin: origin}
		}
		return registry.Asking{}
	}
	t.Preview = func(ctx context.Context, call registry.Call) (registry.Preview, error) {
		p := registry.Preview{Kind: registry.PreviewInfo}
		if r.confirm.reason(ctx, call.Params) != "" {
			p.Title, p.Prompt = r.confirm.title, r.confirm.prompt
		}
		return p, nil
	}
}

// confirmation says which calls of a tool need confirmation although the policy
// allows them, and has the text of the question.
type confirmation struct {
	when          *jq.Expression // condition on the params; nil means all calls
	title, prompt string
}

// readConfirmation is strict: if a misspelled field were ignored, confirmation
// would apply to other calls than the author intended.
func readConfirmation(raw json.RawMessage) (*confirmation, error) {
	var in struct{ When, Title, Prompt string }
	if err := jsonx.DecodeKnown(raw, &in); err != nil {
		return nil, fmt.Errorf("%w; it takes the strings when, title and prompt", err)
	}
	c := &confirmation{title: in.Title, prompt: in.Prompt}
	var err error
	if in.When != "" {
		c.when, err = jq.Compile(in.When)
	}
	return c, err
}

// reason returns why a person has to confirm a call with these params, or "" if the
// condition is false. A condition that cannot be evaluated is true.
func (c *confirmation) reason(ctx context.Context, params json.RawMessage) string {
	why := "its confirm applies to every call"
	if c.when != nil {
		v, err := jq.Decode(params)
		holds := false
		if err == nil {
			holds, err = jq.Holds(c.when.ValueBriefly(ctx, v))
		}
		switch {
		case err != nil:
			why = fmt.Sprintf("its confirm.when %s failed: %s", text.Quote(c.when.Text), err)
		case !holds:
			return ""
		default:
			why = fmt.Sprintf("its confirm.when %s is true", text.Quote(c.when.Text))
		}
	}
	if c.title != "" {
		why = fmt.Sprintf("%s (%s)", text.Quote(c.title), why)
	}
	return "the tool itself asks: " + why
}

// readDuration reads an integer in milliseconds or text such as "30s".
func readDuration(raw json.RawMessage) (time.Duration, error) {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	var ms int64
	if json.Unmarshal(raw, &ms) == nil && ms >= 0 && ms <= most {
		return time.Duration(ms) * time.Millisecond, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return d, nil
		}
	}
	return 0, errors.New(`not whole milliseconds or a duration such as "30s", 0 or more`)
}
