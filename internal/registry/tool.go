package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// Tool is a definition with the functions that act on it. It is a struct, not
// an interface, so that a middleware can copy the value, replace Run and keep
// everything else.
//
// Run is required; all other functions may be nil. The functions are safe for
// concurrent use.
type Tool struct {
	Definition

	// Identity describes what provides the tool: the command line, URL and
	// names of environment variables of a server, or the argv of a call
	// command. It contains no secrets. Approvals are tied to it together with
	// the definition (spec section 8.5). nil for built-in tools.
	Identity json.RawMessage

	// Trusted is set if the settings trust the tool's server
	// (mcpServers.NAME.trust).
	Trusted bool

	// Declared is the file that declares the tool, for messages; "" if none.
	Declared string

	// Unmet is the condition of the tool (channels, when) that is not true in
	// this run; "" if there is none.
	Unmet string

	// Program is the kind of program that a call starts and that [Call.Confine]
	// confines, such as ProgramShell; "" if a call starts none.
	Program string
	// Folder is the program's own folder, absolute, which it may read; "" for none.
	Folder string

	// Quarantine is why the tool cannot be used; nil if it can. A quarantined
	// tool is listed as hidden, and a call of it returns this error.
	Quarantine error

	// Timeout limits one call; 0 means that the tool has no limit.
	Timeout time.Duration

	// given is the name that the source gave the tool.
	given string
	// maybe has the names that an override may give the tool, until that is known.
	maybe []string

	// Wire converts a call to the params that the tool's source expects, if an
	// override changes them. The functions below take calls as models make them.
	// nil: they are the same.
	Wire func(Call) (Call, error)

	// Project returns the part of a result that an override keeps. nil: all of it.
	Project func(context.Context, Result) (Result, error)

	// Run makes the call. An error means that the call could not be made; a
	// Result with IsError means that the tool ran and failed.
	Run func(context.Context, Call) (Result, error)

	// Check is the tool's own validation after that of the schema. It returns
	// an *ArgsError if the params are wrong.
	Check func(context.Context, Call) error

	// Subject returns what the call would access, for policy rules. nil: rules
	// can match only the tool.
	Subject func(Call) (Subject, error)

	// Confirm returns why the person should confirm the call although policy
	// allows it. nil: only policy decides.
	Confirm func(context.Context, Call) Asking

	// Preview returns what a person should see before the call. It changes
	// nothing. nil: the params are shown.
	Preview func(context.Context, Call) (Preview, error)

	// Revise returns the call whose outcome is content, the person's edit of
	// Preview.NewContent. nil: the proposal cannot be edited.
	Revise func(ctx context.Context, call Call, content string) (Call, error)
}

// The kinds of programs that calls start, as in the settings below sandbox.
const (
	ProgramShell     = "shell"
	ProgramPlugins   = "plugins"
	ProgramDiscovery = "discovery"
)

// Call is a request to run a tool.
type Call struct {
	// Tool is the name of the tool as the caller wrote it.
	Tool string
	// Params is one JSON object, byte for byte as it was validated.
	Params json.RawMessage
	// Edited is an object with the params that an override fixes and that the
	// person changed. Only Revise sets it.
	Edited json.RawMessage
	// Emit receives output while the tool runs, for tools with CanUpdateOutput.
	// The executor sets it, so it is never nil in Run. It may be called from
	// several goroutines.
	Emit func(Content)
	// Keep is how many bytes of text of a result are kept. Spill receives the
	// whole output for a file; a tool that uses it need not store more than
	// Keep. nil: nothing is cut. Spill may be called from several goroutines.
	Keep  int64
	Spill func(p []byte)
	// Progress receives progress (MCP progress and log notifications). It is
	// never nil in Run.
	Progress func(Progress)
	// Last says that nothing is called after it, so that what provides the tool may
	// end as soon as it has answered.
	Last bool
	// Confine is how the program that the call starts is confined. A tool with a
	// Program must start it so. nil: not at all.
	Confine *Confinement
	// Paths are the paths that the decision was about, as Subject gave them. A tool
	// must not use another file that a name has come to lead to since. nil: there
	// are none.
	Paths []string
	// Hides reports whether rules deny access to a path, relative to the
	// workspace. A search omits such files and counts them. It may be called
	// from several goroutines. nil: no path is hidden.
	Hides func(path string) bool
}

// Confinement is how the program of one call is confined.
type Confinement struct {
	Profile *sandbox.Profile
	// Refused are the connections that the sandbox refused, as host:port. Background
	// says that the program goes on after the call. The tool sets both.
	Refused    []string
	Background bool
}

// Progress is the progress of a running call. Total is 0 if unknown.
type Progress struct {
	Done, Total float64
	Message     string
}

// Subject is what a call would access, as far as its params show.
type Subject struct {
	Command   string   // a shell command line, "" if none
	Directory string   // where Command would run, relative to the workspace
	Paths     []string // files or folders, relative to the workspace, slashes
	URLs      []string // URLs that would be fetched
}

// Asking is the reason to ask a person about a call that policy allows. The
// zero value is no reason.
type Asking struct {
	Reason string // one line; foreign text in it is quoted
	Origin string // origin of the reason: a file, or "hook"
}

// PreviewKind is the kind of a confirmation (spec section 8.5).
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
	// Command and Directory belong to PreviewExec.
	Command   string
	Directory string
	// Prompt and URLs belong to PreviewInfo.
	Prompt string
	URLs   []string
}

// Middleware wraps a tool. It copies the value, replaces Run and returns it.
type Middleware func(Tool) Tool
