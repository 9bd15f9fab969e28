// Package shell has the built-in tools that run programs: run_shell_command,
// and process for the commands that it leaves running in the background.
package shell

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/timing"
)

//go:embed run_shell_command.md
var shellDescription string

const (
	shellName       = "run_shell_command"
	shellMaxCommand = 100_000 // bytes; Linux limits one argument to 128 KiB
	shellTimeout    = 120 * time.Second
	shellMaxTimeout = time.Hour
)

// Options tune the tools.
type Options struct {
	// StateDir holds the records of background processes; "" disables them.
	StateDir string
	// Env is the whole environment of commands, "K=V" entries.
	Env []string
	// Timeout bounds a command that names no timeout; 0 means 120 s.
	Timeout time.Duration
	// MaxTimeout bounds the time limit of a command; 0 means 1 h. A longer Timeout
	// overrides 1 h.
	MaxTimeout time.Duration
	// Keeper is the argv of a program that calls [Keep] with the arguments appended
	// to it. The program must be given as a path. If Keeper is empty, background
	// commands are disabled.
	Keeper []string
	// MaxOutput limits each of stdout and stderr of a command, in bytes; 0 means 10
	// MiB.
	MaxOutput int64
}

// timeLimit returns the time limit of a call with the timeout param seconds,
// which may be nil.
func timeLimit(tool string, seconds *tool.Integer, opts *Options) (time.Duration, error) {
	most := cmp.Or(opts.MaxTimeout, shellMaxTimeout)
	if most == shellMaxTimeout {
		most = max(most, opts.Timeout)
	}
	if seconds == nil {
		return min(cmp.Or(opts.Timeout, shellTimeout), most), nil
	}
	if *seconds < 1 || int64(*seconds) > int64(most/time.Second) {
		return 0, registry.Invalid(tool, "/timeout",
			"is %d; it must be 1 to %d seconds (raise shell.maxTimeout in the settings to allow more)",
			*seconds, int64(most/time.Second))
	}
	return time.Duration(*seconds) * time.Second, nil
}

const shellSchema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "maxLength": 100000, "description": "The command line, exactly as the shell gets it."},
    "description": {"type": "string", "description": "What the command does, in a few words, for the log."},
    "directory": {"type": "string", "minLength": 1, "description": "The folder to run it in, relative to the workspace or absolute inside it. Default: the workspace."},
    "timeout": {"type": "integer", "minimum": 1, "description": "Seconds after which it is stopped, unless it runs in the background. Default: 120."},
    "background": {"type": "boolean", "description": "Return at once and leave the command running; the process tool controls it. Default: false."}
  },
  "required": ["command"],
  "additionalProperties": false
}`

type shellParams struct {
	Command     string        `json:"command"`
	Description string        `json:"description"`
	Directory   string        `json:"directory"`
	Timeout     *tool.Integer `json:"timeout"`
	Background  bool          `json:"background"`
}

// NewRunShellCommand returns the tool run_shell_command.
func NewRunShellCommand(opts Options, w *workspace.Dir) registry.Tool {
	opts.Env = guardLocale(guardGit(opts.Env))
	s := &shellTool{opts: &opts, workspace: w}
	t := tool.New(registry.Definition{
		Name:            shellName,
		Description:     shellDescription,
		Category:        registry.CategoryCommand,
		Tags:            []string{"shell"},
		Icon:            "terminal",
		Permissions:     []string{"shell"},
		CanUpdateOutput: true,
		InputSchema:     json.RawMessage(shellSchema),
		Examples: []registry.Example{
			{Description: "Run the tests of one folder", Params: json.RawMessage(`{"command":"go test ./...","directory":"server","timeout":300}`)},
			{Description: "Start a server", Params: json.RawMessage(`{"command":"python3 -m http.server 8000","background":true}`)},
		},
	}, tool.Handlers[*shellCall]{Prepare: s.prepare, Run: s.run, Subject: s.subject, Preview: s.preview})
	t.Program = registry.ProgramShell
	return t
}

type shellTool struct {
	opts      *Options
	workspace *workspace.Dir
}

// shellCall is a call with its params decoded and checked.
type shellCall struct {
	shellParams
	root    string // the path of the workspace
	dir     string // relative to root
	timeout time.Duration
}

func (s *shellTool) prepare(call registry.Call) (*shellCall, error) {
	p, err := tool.Decode[shellParams](shellName, call)
	if err != nil {
		return nil, err
	}
	c := &shellCall{shellParams: p}
	switch {
	case strings.TrimSpace(p.Command) == "":
		return nil, registry.Invalid(shellName, "/command", "is empty")
	case strings.ContainsRune(p.Command, 0):
		return nil, registry.Invalid(shellName, "/command", "contains a NUL byte")
	case len(p.Command) > shellMaxCommand:
		return nil, registry.Invalid(shellName, "/command",
			"is longer than %d bytes; write it to a file and run that", shellMaxCommand)
	}
	switch {
	case p.Background && len(s.opts.Keeper) == 0:
		return nil, registry.Invalid(shellName, "/background",
			"is not available: toolreg cannot find its own program file")
	case p.Background && s.opts.StateDir == "":
		return nil, registry.Invalid(shellName, "/background",
			"needs a state folder for the output, and none is available")
	}
	c.timeout, err = timeLimit(shellName, p.Timeout, s.opts)
	if err != nil {
		return nil, err
	}
	if c.dir, err = s.workspace.Param(shellName, "/directory", cmp.Or(p.Directory, ".")); err != nil {
		return nil, err
	}
	c.root, err = s.workspace.Path()
	return c, err
}

func (s *shellTool) subject(c *shellCall) (registry.Subject, error) {
	return registry.Subject{Command: c.Command, Directory: c.dir}, nil
}

func (s *shellTool) preview(_ context.Context, call registry.Call, c *shellCall) (registry.Preview, error) {
	if r, ok := s.workspace.NotFolder(c.dir, cmp.Or(c.Directory, "."), call.Hides); ok {
		return registry.Preview{}, &registry.FailedError{Result: r}
	}
	return registry.Preview{
		Kind: registry.PreviewExec, Title: "Run a shell command", Command: c.Command, Background: c.Background,
		Directory: filepath.Join(c.root, filepath.FromSlash(c.dir)),
	}, nil
}

func (s *shellTool) run(ctx context.Context, call registry.Call, c *shellCall) (registry.Result, error) {
	if r, ok := s.workspace.NotFolder(c.dir, cmp.Or(c.Directory, "."), call.Hides); ok {
		return r, nil
	}
	open, err := s.workspace.OpenStart(c.dir)
	if err != nil {
		return s.workspace.Failure(c.dir, cmp.Or(c.Directory, "."), err, call.Hides), nil
	}
	defer open.Close()
	dir := filepath.Join(c.root, filepath.FromSlash(c.dir))
	argv := argvOf(Name(s.opts.Env), runtime.GOOS == "windows", c.Command)
	if c.Background {
		return s.background(ctx, c, argv, process.FolderPath(open, dir))
	}
	if confined := process.ConfinementOf(ctx); confined.HasLoopback() {
		if store, err := newBackgroundStore(s.opts); err == nil {
			confined.Profile.Network.Join, _ = store.loopback(scopeOf(ctx, c.root))
		}
	}
	if c.Timeout == nil && call.Limit != 0 {
		c.timeout = 0
	}
	limit := fmt.Errorf("stopped at its time limit of %s; set a longer timeout or background: true", c.timeout)
	inner, cancel := timing.Limit(ctx, c.timeout, limit)
	defer cancel()
	stream := &textStream{emit: call.Emit}
	spec := process.Spec{
		Argv: argv, Dir: dir, Folder: open, Env: s.opts.Env, NotFrom: c.root,
		MaxOutput: -1, Keep: cmp.Or(s.opts.MaxOutput, process.DefaultMaxOutput),
		Output: func(n int, p []byte) {
			stream.write(n, p)
			if call.Spill != nil {
				call.Spill(p)
			}
		},
	}
	out, err := process.ConfinementOf(ctx).Run(inner, spec)
	stream.end()
	if _, ok := errors.AsType[*process.StartError](err); ok {
		return registry.Result{}, fmt.Errorf("running a shell command: %w", err)
	}
	r := resultOf(c.Command, c.dir, out, err)
	if cause := context.Cause(ctx); cause != nil {
		r.ErrorCategory = registry.ErrorCancellation
		return r, fmt.Errorf("running a shell command: %w", cause)
	}
	if err != nil && errors.Is(err, limit) {
		r.ErrorCategory = registry.ErrorTimeout
	}
	return r, nil
}

// background starts the command and returns its id without waiting for it.
func (s *shellTool) background(ctx context.Context, c *shellCall, argv []string, dir string) (registry.Result, error) {
	store, err := newBackgroundStore(s.opts)
	if err != nil {
		return registry.Result{}, err
	}
	program, err := (process.Spec{Argv: argv, Dir: dir, Env: s.opts.Env, NotFrom: c.root}).Program()
	if err != nil {
		return registry.Result{}, fmt.Errorf("running a shell command: %w", err)
	}
	argv[0] = program
	r := &backgroundRecord{Workspace: c.root, Command: c.Command, Directory: c.dir}
	if err := store.start(ctx, r, s.opts, process.ConfinementOf(ctx), argv, dir); err != nil {
		return registry.Result{}, fmt.Errorf("running a shell command in the background: %w", err)
	}
	res := registry.TextResult(fmt.Sprintf(
		"Started in the background with id %q (PID %d). The process tool shows its output (action log), waits for its end (wait) or stops it (kill).",
		r.ID, r.PID))
	res.Summary = "started in the background with id " + r.ID
	return res, nil
}

// Name returns the name of the shell that run_shell_command uses in the given
// environment: "bash", "sh" if PATH has no bash, or "zsh" if it has neither. On
// Windows it is "pwsh" or "powershell".
func Name(env []string) string {
	names, usual := []string{"bash", "sh", "zsh"}, "sh"
	if runtime.GOOS == "windows" {
		names, usual = []string{"pwsh", "powershell"}, "powershell"
	}
	for _, name := range names {
		if _, err := (process.Spec{Argv: []string{name}, Env: env}).Program(); err == nil {
			return name
		}
	}
	return usual // if it is missing, starting it reports that
}

// argvOf returns the argv with which a shell runs a command line, with its bytes unchanged.
func argvOf(shell string, windows bool, command string) []string {
	if windows {
		return []string{shell, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", command}
	}
	if command[0] == '-' || command[0] == '+' {
		return []string{shell, "-c", "--", command} // otherwise the command would be parsed as options
	}
	return []string{shell, "-c", command}
}

// guardGit returns the environment with a setting that makes git use an
// embedded bare repository only if it is named explicitly. Otherwise git would
// run commands from the configuration of files in the workspace that look like
// a repository.
func guardGit(env []string) []string {
	const variable = "GIT_CONFIG_COUNT="
	count := 0
	out := slices.Clone(env)
	if i := slices.IndexFunc(out, func(e string) bool { return strings.HasPrefix(e, variable) }); i >= 0 {
		n, err := strconv.Atoi(out[i][len(variable):])
		if err != nil || n < 0 {
			return env // git rejects such an environment
		}
		count = n
		out = slices.Delete(out, i, i+1)
	}
	n := strconv.Itoa(count)
	return append(out, variable+strconv.Itoa(count+1), "GIT_CONFIG_KEY_"+n+"=safe.bareRepository", "GIT_CONFIG_VALUE_"+n+"=explicit")
}

// guardLocale returns the environment with a UTF-8 locale, because the analysis of
// command lines assumes UTF-8. In some other encodings, a byte of a character can be a
// backslash.
func guardLocale(env []string) []string {
	if runtime.GOOS == "windows" { // its shells read UTF-16
		return env
	}
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "LC_ALL=") })
	return append(out, "LC_ALL=C.UTF-8")
}
