package registry

import (
	"context"
	"encoding/json"
	"time"
)

// Tool is a definition with the functions that act on it. Tool is a struct,
// not an interface, so that a middleware copies the value, replaces Run and
// keeps everything else.
//
// Run is required; every other function may be nil. The functions are safe for
// concurrent use.
type Tool struct {
	Definition

	// Identity tells what stands behind the tool beyond its definition: the
	// command line, URL and names of environment variables of a server, the
	// argv of a call command. It holds no secret values. Approvals are tied to
	// it together with the definition (spec section 8.5). nil for built-ins.
	Identity json.RawMessage

	// Trusted is set when the settings say that this tool's server is not to
	// be asked about (mcpServers.NAME.trust).
	Trusted bool

	// Declared is the file that declares the tool, for messages; "" if none.
	Declared string

	// Unmet says which of the tool's conditions (channels, when) does not hold in
	// this run; "" = it applies.
	Unmet string

	// Quarantine is why the tool cannot be used though its source has it; nil: it
	// can. It is listed as hidden, and a call of it has this error.
	Quarantine error

	// Timeout bounds one call; 0 means no limit of the tool's own.
	Timeout time.Duration

	// Run makes the call. A non-nil error means that the call could not be
	// made; a Result with IsError means that the tool ran and said no.
	Run func(context.Context, Call) (Result, error)

	// Check is the tool's own validation behind the schema. It returns an
	// *ArgsError where the params are at fault.
	Check func(Call) error

	// Subject tells what the call would touch, for policy rules. nil: nothing
	// that rules could match beside the tool itself.
	Subject func(Call) (Subject, error)

	// Confirm says why a person is to be asked about the call though policy
	// allows it. nil: policy alone decides.
	Confirm func(context.Context, Call) Asking

	// Preview tells what a person should see before the call. nil: the params.
	// It changes nothing.
	Preview func(context.Context, Call) (Preview, error)

	// Revise returns the call whose outcome is content, the person's edit of
	// Preview.NewContent. nil: the proposal cannot be edited.
	Revise func(ctx context.Context, call Call, content string) (Call, error)
}

// Call is one request to run a tool.
type Call struct {
	// Tool is the name of the tool as the caller wrote it.
	Tool string
	// Params is one JSON object, byte for byte what was validated.
	Params json.RawMessage
	// Emit receives output as it comes, for tools with CanUpdateOutput. The
	// executor makes sure that it is never nil when Run is entered. It may be
	// called from several goroutines.
	Emit func(Content)
	// Keep is how much text of a result is kept, in bytes, and Spill takes all that
	// a program prints for a file of its own: a tool that gives it all need not hold
	// more than Keep. nil: nothing is cut. Spill may be called from several
	// goroutines.
	Keep  int64
	Spill func(p []byte)
	// Progress receives progress notes (MCP progress and log notifications).
	// Never nil when Run is entered.
	Progress func(Progress)
	// Hides tells the paths, relative to the workspace, that rules keep from the
	// caller: a search leaves them out and counts them. It may be called from
	// several goroutines. nil: none.
	Hides func(path string) bool
}

// Progress is one note on a running call. Total is 0 where it is not known.
type Progress struct {
	Done, Total float64
	Message     string
}

// Subject is what a call would touch, as far as its params tell.
type Subject struct {
	Command   string   // a shell command line, "" if none
	Directory string   // where Command would run, relative to the workspace
	Paths     []string // files or folders, relative to the workspace, slashes
	URLs      []string // addresses that would be fetched
}

// Asking is why a person is to be asked about a call that policy allows. The
// zero value is no reason to ask.
type Asking struct {
	Reason string // one line; foreign text in it is quoted
	Origin string // what asks: a file, "hook"
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
// like PreviewInfo.
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
