package registry

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Tool is a definition together with the functions that a call uses. It is a struct, not an
// interface, so that a middleware can copy the value, replace Run and keep everything else.
type Tool struct {
	Definition // what is published
	Behavior   // what a call does
	Standing   // set by the registry

	// Identity describes the program or server that provides the tool: the command
	// line, URL and names of environment variables of a server, or the argv of a call
	// command. It contains no secrets. Approvals are tied to it and to the
	// definition. nil for built-in tools.
	Identity json.RawMessage

	// Trusted is set if the settings trust the tool's server
	// (mcpServers.NAME.trust).
	Trusted bool

	// Declared is the file that declares the tool, for messages. It may be empty.
	Declared string

	// Unmet is the condition of the tool (channels, when) that is not met in this
	// run; "" if all are met.
	Unmet string
}

// Behavior is what a call of a tool does. Run is required; all other functions may be nil. The
// functions are safe for concurrent use.
type Behavior struct {
	// Run makes the call. An error means that the call could not be made; a
	// Result with IsError means that the tool ran and failed.
	Run func(context.Context, Call) (Result, error)

	// Check validates the params after they have been checked against the schema. It
	// returns an *ArgsError if the params are wrong.
	Check func(context.Context, Call) error

	// Subject returns what the call would access, for policy rules. If nil, rules can
	// match only the tool.
	Subject func(Call) (Subject, error)

	// Confirm returns why a person has to confirm a call that the policy allows. If
	// nil, only the policy decides.
	Confirm func(context.Context, Call) Asking

	// Preview returns what to show a person before the call. It changes nothing. If
	// nil, the params are shown.
	Preview func(context.Context, Call) (Preview, error)

	// Revise returns the call that results in content, which is Preview.NewContent as
	// edited by the person. If nil, the proposal cannot be edited.
	Revise func(ctx context.Context, call Call, content string) (Call, error)

	// Wire converts a call as a model makes it to the params that the tool's source
	// expects, if an override changes them. All other functions take calls as models
	// make them. If nil, the params are the same.
	Wire func(Call) (Call, error)

	// Shapes returns the params of a call in each shape that a rule may mean: as the tool is
	// declared, with the values that an override sends for absent params; as its source receives
	// them; and as the person's own override declares them, if that differs from both. If nil, the
	// only shape is that of the call.
	Shapes func(Call) ([]json.RawMessage, error)

	// Project applies the override's expression to a result. If nil, the result is
	// unchanged.
	Project func(context.Context, Result) (Result, error)

	// Timeout is the tool's own time limit for a call; 0 means no limit.
	Timeout time.Duration

	// Program is the kind of program that a call starts, such as ProgramShell; "" if it
	// starts none. Run must start it in the sandbox that its context carries (see
	// process.ConfinementOf).
	Program string
	// Folder is the absolute path of the program's own folder, which it may read in
	// the sandbox. It may be empty.
	Folder string
}

// Standing is what a registry decides about a tool. Sources set only Quarantine.
type Standing struct {
	// Quarantine is the reason why the tool cannot be used, or nil. A quarantined
	// tool is listed as hidden, and a call of it returns this error.
	Quarantine error

	// Contested is a failed server that comes before the tool's own and may have the tool's plain
	// name, which nothing assigns to either; "" if there is none.
	Contested string

	// Lent says that the tool has its plain name only through the lock file of an untrusted
	// project, or that it is the project's tool and has taken the name from another. Settings that
	// allow tools by that name do not apply to it.
	Lent bool

	// OfProject is set if a project's settings or plugin folder name the program or server behind
	// the tool. Replaces is set if they name it in place of a server, plugin or command of the
	// person's settings; what those allow by name does not apply to the tool.
	OfProject, Replaces bool

	// ousted is the plain name of a server's tool that only the project gives to another tool, so
	// that overrides of the name still apply to this one; "" if there is none.
	ousted string

	// given is the source's own name for the tool.
	given string
	// maybe has the names that overrides may give the tool, and mayKeep those of them that do not
	// come from a project. They are set until the overrides have been applied.
	maybe, mayKeep []string
}

// The kinds of programs that calls start, as in the settings sandbox.*.
const (
	ProgramShell     = "shell"
	ProgramPlugins   = "plugins"
	ProgramDiscovery = "discovery"
)

// RemoteTask is a call that an MCP server continues by itself.
type RemoteTask struct {
	ID     string `json:"taskId"`           // of the server
	Legacy bool   `json:"legacy,omitempty"` // of revision 2025-11-25
	// Started is when the process of its server was started, and Socket how it is reached, if that
	// is kept between runs: the task ends with it.
	Started time.Time `json:"started,omitzero"`
	Socket  string    `json:"socket,omitempty"`
}

// Call is a request to run a tool.
type Call struct {
	// Tool is the name of the tool as the caller wrote it.
	Tool string
	// Params is one JSON object, byte for byte as it was validated.
	Params json.RawMessage
	// ID is the model's id of the call, as JSON; nil if there is none.
	ID json.RawMessage
	// Place is the place in a script that makes the call, as FILE:LINE:COL; "" if none does.
	Place string
	// Edited is an object with the params that an override fixes but the person
	// changed. Only Revise sets it.
	Edited json.RawMessage
	// Emit receives output while the tool runs, for tools with CanUpdateOutput.
	// The executor sets it, so it is never nil in Run. It may be called from
	// several goroutines.
	Emit func(Content)
	// Keep is the number of bytes to keep of a result's text. Spill saves the whole
	// output to a file, so that the tool need not store more than Keep; it may be
	// called from several goroutines. If Spill is nil, nothing is cut.
	Keep  int64
	Spill func(p []byte)
	// Limit is the time limit of the call from a flag or the settings. The executor enforces it; if
	// it is not 0, the tool adds no default of its own. A negative value means no limit.
	Limit time.Duration
	// Progress receives progress (MCP progress and log notifications). It is
	// never nil in Run.
	Progress func(Progress)
	// Last is set if no other call follows, so that the tool's server may be stopped
	// as soon as it has answered.
	Last bool
	// Detach, if not nil, says that the caller does not wait for the result. It is called with the
	// task that the tool's server makes. A server that makes none returns the result.
	Detach func(RemoteTask) error
	// Admit decides about params that the call leads to, such as those with the address of a
	// redirect. agreed says that a person who confirmed this call has agreed to them too, unless a
	// rule asks. An error means that the call must not continue. It is never nil in Run.
	Admit func(ctx context.Context, params json.RawMessage, agreed bool) error
	// Steps makes calls for tools that consist of calls. It is never nil in Run if the session has
	// such tools.
	Steps Steps
	// Paths are the paths that the policy decided about, as returned by Subject. The tool must not
	// access a different file if one of these names has changed its meaning, for example through a
	// new link.
	Paths []string
	// Hides reports to a built-in tool whether rules deny access to a path, relative to the
	// workspace. A search omits such files and counts them. It may be called from several
	// goroutines. If nil, no path is hidden. Calls with the same HidesKey hide the same paths, so
	// that none gets a stored result from which less was hidden.
	Hides    func(path string) bool
	HidesKey string
}

// forApp reports whether only pages of the tool's server may call it, and no model (MCP Apps
// 2026-01-26, "Tool visibility"). Without a visibility, both may.
func (t *Tool) forApp() bool {
	visibility, ok := jsonx.Elements(jsonx.Get(jsonx.Get(t.MCP.Meta, "ui"), "visibility"))
	return ok && len(visibility) > 0 && !slices.ContainsFunc(visibility, func(who json.RawMessage) bool {
		name, _ := jsonx.Text(who)
		return name != "app"
	})
}

// Steps makes calls for tools that consist of calls. Each is validated, decided on by the policy
// and run like any other call.
type Steps interface {
	// Step makes a call of a tool, by any of its names.
	Step(ctx context.Context, tool string, params json.RawMessage) (Result, error)
	// Script runs a script with the params of a call. file is for positions.
	Script(ctx context.Context, file string, text []byte, call Call) (Result, error)
}

// Progress is the progress of a running call. Total is 0 if unknown.
type Progress struct {
	Done    float64 `json:"done"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Subject is what a call would access, as far as its params show.
type Subject struct {
	Command   string   `json:"command,omitempty"`   // a shell command line, "" if none
	Directory string   `json:"directory,omitempty"` // where Command would run, relative to the workspace
	Paths     []string `json:"paths,omitempty"`     // files or folders, relative to the workspace, slashes
	URLs      []string `json:"urls,omitempty"`      // URLs that would be fetched
}

// Asking is the reason to ask a person about a call that the policy allows. The
// zero value means that there is no reason.
type Asking struct {
	Reason string // one line; untrusted text in it is quoted
	Origin string // origin of the reason: a file, or "hook"
}

// PreviewKind is the kind of a confirmation.
type PreviewKind string

// The four kinds of confirmation.
const (
	PreviewEdit PreviewKind = "edit"
	PreviewExec PreviewKind = "exec"
	PreviewMCP  PreviewKind = "mcp"
	PreviewInfo PreviewKind = "info"
)

// Preview is what a person is shown before a call runs. The zero Kind is shown
// as PreviewInfo.
type Preview struct {
	Kind  PreviewKind
	Title string
	// Diff, FileName, OriginalContent and NewContent belong to PreviewEdit.
	Diff            string
	FileName        string
	OriginalContent string
	NewContent      string
	// Unchanged means that the call changes nothing, so that nobody is asked.
	Unchanged bool
	// Basis identifies the state of all files that the change was made from, together
	// with OriginalContent.
	Basis string
	// Command, Directory and Background belong to PreviewExec. Background is set if the
	// command continues after the call.
	Command    string
	Directory  string
	Background bool
	// Prompt and URLs belong to PreviewInfo.
	Prompt string
	URLs   []string
}

// Middleware wraps a tool. It copies the value, replaces Run and returns it.
type Middleware func(Tool) Tool

// isPlain reports whether a server's tool is registered without the server's name.
func (t *Tool) isPlain() bool { return t.OfServer() && t.Name == ValidName(t.PlainName()) }

// Source provides tools. Discover must return soon after ctx is done. It is called
// at most once, except that [Loader.Renew] calls it again. If only some tools
// cannot be used, they are reported as diagnostics. An error means that the whole
// source failed; the tools are then ignored. Discover may be called from any
// goroutine.
//
// A source that has processes or connections also implements io.Closer. The caller
// of the Loader closes it with [Loader.Close], even if Discover failed.
type Source interface {
	// Name is the value of Definition.Source for its tools: "builtin",
	// "plugin:ID", "command", "composite", "mcp:SERVER".
	Name() string
	Discover(context.Context) ([]Tool, []Diagnostic, error)
}
