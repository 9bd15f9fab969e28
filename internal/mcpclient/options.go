// Package mcpclient provides the tools, prompts and resources of MCP servers.
// Below it, package wire implements sessions of the protocol, package content
// reads results, and package ask answers the requests that servers make to
// users and models.
//
// A [Source] represents one entry of mcpServers. Discover starts or dials the
// server, negotiates a protocol version, lists all pages of its tools and
// returns them as registry tools whose Run calls the server over the same
// session. Close ends the session and, for a stdio server, its whole process
// group. Everything that a server sends is treated as hostile: sizes, times,
// pages and shapes have limits, and a bad tool is left out without losing the
// server.
package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Options describe the server that a [Source] represents and how to reach it.
type Options struct {
	// Server is the entry of mcpServers, unexpanded.
	Server settings.Server

	// Expand expands the references in Server's strings when they are used, like
	// values.Expander.Server. If nil, the strings are used unchanged.
	Expand func(context.Context, settings.Server) (settings.Server, error)

	// Hide masks the secrets of all settings in text from a server, which may have read them
	// elsewhere. If nil, nothing is masked.
	Hide func(string) string

	// Folder returns the folder in which a stdio server without a cwd starts. nil means the
	// project root.
	Folder func() (string, error)

	ProjectRoot string   // absolute; a relative cwd starts there
	Workspace   string   // absolute; the only root of servers, "" means none
	Environ     []string // our own environment, "K=V"; a server gets a part of it
	Extra       []string // variables that a stdio server gets in any case, "K=V"
	Version     string   // of toolreg, for servers; empty means "dev"

	// ConnectTimeout replaces Server.ConnectTimeout when it is not 0. It covers
	// start, handshake and listing together.
	ConnectTimeout time.Duration

	// Memory remembers the server from run to run. nil means nothing is remembered.
	Memory Memory

	// Counts makes Discover count prompts and resources too, which costs a
	// request for each page of them.
	Counts bool

	// ListOnly ends the session when the server has listed its tools. A call starts
	// it again.
	ListOnly bool

	// Auth returns the source of access tokens for an HTTP server, given its entry
	// with all strings expanded. It is called once per connection and must be cheap.
	// It is not called if the entry has an Authorization header. If Auth or its
	// result is nil, no tokens are sent.
	Auth func(settings.Server) wire.Authorizer

	Limits Limits

	// Confine confines a stdio server; nil means it is not confined.
	Confine process.Confiner
	Apps    bool // clients may show pages of the tools, see [wire.AppsExtension]
	Guard   bool // of a stdio server's process, see [process.Spec]

	// Keep lets a stdio server outlast the run; nil means it ends with the run.
	Keep *Keep

	// Logger receives stderr lines of the server (level info), text on its stdout
	// that is not a message (warn) and protocol details (debug). If nil, nothing is
	// logged.
	Logger *slog.Logger

	// OnState is called on every change of state, from any goroutine. May be nil.
	OnState func(server string, state State)

	// Exchange is called for each request about prompts and resources, except completions, with its
	// params. It returns the result, from calling send or from a recording. The result of a list
	// has the items of all its pages; nil means that the server does not offer them. A nil Exchange
	// sends all requests.
	Exchange func(ctx context.Context, method string, params any,
		send func() (json.RawMessage, error)) (json.RawMessage, error)
	// Recorded lists the tools of a recorded server, which is not started; Exchange answers all
	// other requests. Nil means a real server.
	Recorded registry.Source

	// Callbacks answer the server's questions during requests.
	ask.Callbacks

	// OnLog gets the server's log messages, from any goroutine, in order. May be
	// nil.
	OnLog func(LogMessage)
	// LogLevel is the lowest level of log messages that the server should send, one
	// of the protocol's names such as "info"; "" requests none.
	LogLevel string
}

// LogMessage is a log message of a server. Its texts are the server's words.
type LogMessage struct {
	Server string
	Level  string // debug, info, notice, warning, error, critical, alert or emergency
	Logger string // "" means none
	Text   string // JSON if the server did not send text
	// Caller is the client whose request was running when the message arrived; nil for
	// the user at the command line or if it is unknown.
	Caller *caller.Caller
}

func (o *Options) exchange(ctx context.Context, method string, params any,
	send func() (json.RawMessage, error)) (json.RawMessage, error) {
	if o.Exchange == nil {
		return send()
	}
	return o.Exchange(ctx, method, params, send)
}

// owner returns the owner of the session for a call: the client of ctx with
// perClient, otherwise nil for the shared session.
func (o *Options) owner(ctx context.Context) any {
	if c := caller.From(ctx); c != nil && o.Server.PerClient {
		return c.Owner
	}
	return nil
}

// maxOwners limits how many clients have a process of their own at once.
const maxOwners = 100

func (o *Options) log() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger.With("server", o.Server.Name)
}

// Keep says how a stdio server outlasts a run, and how later runs find it.
type Keep struct {
	For     time.Duration // how long it waits for the next run
	Use     KeptUse       // of the server by this run
	Lists   bool          // lists must be up to date
	Renew   bool          // do not use cached lists
	Consent bool          // the project is trusted for this run only

	Origin  func() keep.Origin
	Folder  func(context.Context) (*keep.Folder, error)
	Command []string // argv of a program that calls [KeepServer]

	// Plan describes the sandbox of the server for KeepServer; nil if it has none.
	Plan func(context.Context, *process.Spec) (json.RawMessage, error)
}

// KeptUse is how a run uses kept servers.
type KeptUse int

// The uses.
const (
	UseKept    KeptUse = iota // if possible; otherwise the run starts its own
	LookKept                  // only if they are running; this does not count as use
	MustKeep                  // if that is impossible, they fail
	OwnServers                // never
)

// Change is a change reported by a server.
type Change = wire.Change

// Limits limit how much a server may send. A zero field means its default.
type Limits struct {
	Frame  int64 // bytes of one message while connecting and listing, after decompression; 16 MiB
	Result int64 // bytes of one message that answers a call; 64 MiB
	Tools  int   // tools of one server; 10,000
	Pages  int   // pages of one listing; 100
	Schema int64 // bytes of one schema; 1 MiB

	Samples int // sampling requests during one request of ours; 10
}

func (l Limits) withDefaults() Limits {
	l.Frame = cmp.Or(l.Frame, 16<<20)
	l.Result = cmp.Or(l.Result, 64<<20)
	l.Tools = cmp.Or(l.Tools, 10_000)
	l.Pages = cmp.Or(l.Pages, 100)
	l.Schema = cmp.Or(l.Schema, 1<<20)
	l.Samples = cmp.Or(l.Samples, 10)
	return l
}

func (l Limits) frame() wire.Limit { return wire.Limit{Bytes: l.Frame, Setting: "limits.frame"} }

func (l Limits) result() wire.Limit { return wire.Limit{Bytes: l.Result, Setting: "limits.result"} }

// Memory remembers what earlier runs learned about one server. It is safe for concurrent
// use.
type Memory interface {
	// Load returns what is known, without Protocol, to be used instead of asking the server. An
	// error means that the server must not be asked for its tools.
	Load(context.Context) (Known, error)
	// Protocol returns how the server was reached, "" if that is unknown.
	Protocol(context.Context) string
	// Save stores the fields that are not zero. A listing clears the failure.
	Save(context.Context, Known)
}

// Known is what is known about a server. A zero field is unknown.
type Known struct {
	Listing  *Listing           // to be used instead of asking the server
	Protocol string             // how the server was reached: "legacy", "modern" or "sse"
	Failure  error              // how it failed recently, so that not every run waits for it
	Offers   map[string][]Offer // for completion, by kind, such as [OfferPrompts]
}

// onlyProtocol is a Memory that only knows how the server was reached, and stores nothing.
type onlyProtocol string

func (onlyProtocol) Load(context.Context) (Known, error) { return Known{}, nil }

func (p onlyProtocol) Protocol(context.Context) string { return string(p) }

func (onlyProtocol) Save(context.Context, Known) {}

// Listing is the server's description of itself and its tools, byte for byte.
type Listing struct {
	Tools    [][]byte // elements of tools/list, in order
	Facts    Facts
	ListedAt time.Time // when the server was asked; set by Load
}

// Facts is the rest of a [Listing].
type Facts struct {
	Cut             string          `json:"cut,omitempty"` // why not all tools were listed
	Loop            bool            `json:"loop,omitempty"`
	Transport       string          `json:"transport"`
	ProtocolVersion string          `json:"protocolVersion"`
	ServerInfo      json.RawMessage `json:"serverInfo,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Counted         bool            `json:"counted,omitempty"` // Prompts and Resources are known
	Prompts         int             `json:"prompts,omitempty"`
	Resources       int             `json:"resources,omitempty"`
}

// Offer is a prompt or a resource of a server, reduced to the fields that
// completion shows. The texts are the server's.
type Offer struct {
	Name        string           `json:"name"` // the URI of a resource
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"` // of a prompt
}

// PromptArgument is one argument of a prompt. All arguments are text.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// The lists of a server, each named by the key of its items in a result.
const (
	listTools     = "tools"
	listPrompts   = "prompts"
	listResources = "resources"
	listTemplates = "resourceTemplates"
)

// Kinds of an [Offer].
const (
	OfferPrompts   = listPrompts
	OfferResources = listResources
)

// Revisions returns the revisions of the protocol that sessions can speak,
// newest first.
func Revisions() []string { return wire.Revisions() }
