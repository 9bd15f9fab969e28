package mcpclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
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

	// Hide masks the secrets of all settings in text that a server gave, which may have read
	// them elsewhere. If nil, only those in Server are masked.
	Hide func(string) string

	// Folder returns the folder in which a stdio server without a cwd starts. nil means the
	// project root.
	Folder func() (string, error)

	ProjectRoot string   // absolute; a relative cwd starts there
	Workspace   string   // absolute; the only root of servers, "" means none
	Environ     []string // our own environment, "K=V"; a server gets a part of it
	Extra       []string // variables that a stdio server gets in any case, "K=V"
	Version     string   // of toolreg, for servers; "" = "dev"

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

	// Exchange is called for each request about prompts and resources, except completions,
	// with its params, and returns the result: that of send, or a recorded one. The result of
	// a list has all items of its pages; nil means the server does not offer them. nil means requests
	// are sent.
	Exchange func(ctx context.Context, method string, params any, send func() (json.RawMessage, error)) (json.RawMessage, error)
	// Recorded lists the tools of a server that does not exist, because a recording is
	// replayed; Exchange answers all other requests. nil means there is a server.
	Recorded registry.Source

	// Callbacks answer the server's questions during requests.
	ask.Callbacks

	// Logging configures the log messages that servers send over the protocol.
	Logging
}

// Logging selects the log messages of a server and receives them.
type Logging struct {
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

// exchange is Exchange, or sends the request.
func (o *Options) exchange(ctx context.Context, method string, params any, send func() (json.RawMessage, error)) (json.RawMessage, error) {
	if o.Exchange == nil {
		return send()
	}
	return o.Exchange(ctx, method, params, send)
}

// disabledBy returns the setting that disables the server.
func (o *Options) disabledBy() (string, bool) {
	server := o.Server
	switch {
	case server.Excluded != nil:
		return server.Excluded.String(), true
	case server.Disabled:
		return server.Origin.String() + ": disabled", true
	}
	return "", false
}

// owner returns the owner of the session for a call: the client of ctx with
// perClient, otherwise nil for the shared session.
func (o *Options) owner(ctx context.Context) any {
	if c := caller.From(ctx); c != nil && o.Server.PerClient {
		return c.Owner
	}
	return nil
}

func (o *Options) log() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger.With("server", o.Server.Name)
}

// Change is a change reported by a server.
type Change = wire.Change
