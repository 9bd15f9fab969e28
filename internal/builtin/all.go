package builtin

import (
	"context"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

// Options tune the built-in tools. All paths are absolute.
type Options struct {
	// Workspace is the directory tree that the tools may touch. Required.
	Workspace string
	// Protected are toolreg's own settings and state, files or folders, which
	// no tool changes; they need not exist.
	Protected []string
	// StateDir keeps todo lists and background processes; "" switches off what
	// needs it.
	StateDir string
	// Session tells todo lists of one workspace apart; "" is a session too.
	Session string
	// Caller names the agent that makes the calls, to tell several at one todo
	// list apart; "" means the process that started this one.
	Caller string
	// Began is when this run was started; the zero value means unknown. Whatever
	// other runs have written to a todo list since, its caller cannot know.
	Began time.Time
	// Home and ConfigHome are where git's global excludes are looked for; ""
	// means the user's home and $XDG_CONFIG_HOME or .config in the home.
	Home, ConfigHome string

	// Env is the whole environment of run_shell_command, "K=V" entries.
	Env []string
	// ShellTimeout bounds a command that names no timeout; 0 means 120 s.
	ShellTimeout time.Duration
	// ShellMaxTimeout bounds the timeout that a call may ask for; 0 means 1 h.
	// A longer ShellTimeout counts instead.
	ShellMaxTimeout time.Duration
	// Keeper is the argv that makes a program call [Keep] with what follows it,
	// the program by its path; empty switches off commands in the background.
	Keeper []string
	// MaxOutput bounds stdout and stderr of a command each, in bytes; 0 means
	// 10 MiB.
	MaxOutput int64

	// Fetch tunes web_fetch.
	Fetch FetchOptions
}

// constructors lists every built-in tool, in the order of registration.
func constructors() []func(*Options, *workspace) registry.Tool {
	return []func(*Options, *workspace) registry.Tool{
		newListDirectory,
		newReadFile,
		newGrep,
		newGlob,
		newEdit,
		newWriteFile,
		newShell,
		newProcess,
		newWebFetch,
		newApplyPatch,
		newTodoRead,
		newTodoWrite,
	}
}

// Source returns the source "builtin" with all tools of the package. It costs
// nothing: no file is opened before the first call.
func Source(opts Options) registry.Source {
	return &source{opts: opts, workspace: newWorkspace(&opts)}
}

type source struct {
	opts      Options
	workspace *workspace
}

func (s *source) Name() string { return registry.SourceBuiltin }

func (s *source) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	return tools(&s.opts, s.workspace), nil, nil
}

// Close releases the workspace.
func (s *source) Close() error { return s.workspace.close() }

func tools(opts *Options, w *workspace) []registry.Tool {
	makers := constructors()
	out := make([]registry.Tool, len(makers))
	for i, construct := range makers {
		out[i] = construct(opts, w)
		out[i].Source = registry.SourceBuiltin
	}
	return out
}

// Names returns the canonical names of all built-in tools in the order of
// registration.
func Names() []string {
	all := definitions()
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Name
	}
	return out
}

// Aliases maps each alias of a built-in tool to its canonical name: the names
// of spec section 6.1 and Gemini CLI's names and class names.
func Aliases() map[string]string {
	out := map[string]string{}
	for _, t := range definitions() {
		for _, alias := range t.Aliases {
			out[alias] = t.Name
		}
	}
	return out
}

func definitions() []registry.Tool {
	opts := Options{}
	return tools(&opts, newWorkspace(&opts))
}
